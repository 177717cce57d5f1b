BprobabilitiesJd…>M?tˆÀ8>"¾8dÌJ>Bº8w5¾53œ?<Â:êFq:}:D6”yy7&†8¨Gz?òT¶<qÎ79£,3/8
BT5Pý?ô‘6	±Ø557ÆJ!4"ÕÅ4Dÿ?