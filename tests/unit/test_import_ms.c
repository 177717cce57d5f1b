/* com.microsoft's operators that become others. Expected numbers come from ONNX Runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "support/computed.h"

static const computed cases[] = {
    {"init x 2 1,3,2 241,160,175,229,148,198\n"
     "init w 2 2,6 213,57,14,76,72,223,233,1,127,210,33,204\n"
     "init b 1 6 -0.75,-0.125,0.625,-0.375,-0.375,-0.5\n"
     "init xs 1 - 0.0625\n"
     "init ws 1 - 0.03125\n"
     "init xz 2 - 128\n"
     "init wz 2 - 100\n"
     "node QAttention x,w,b,xs,ws,_,xz,wz y0,y1 domain=com.microsoft num_heads:i=1\n",
     "-10.62891 18.52344 -10.62891 18.52344 -10.62891 18.52344;-16.66797 1.203125 -1.943359 "
     "19.12109 0.9570312 13.72656 -10.74219 33.14648 -16.16211 31.30664 -10.62891 18.52344"},
    {"init x 2 1,2,2 184,65,253,113\n"
     "init w 3 2,12 -3,0,9,6,1,59,36,35,24,14,-20,58,-5,-35,41,-41,42,13,-47,-55,-7,-56,-44,"
     "1\n"
     "init b 1 12 1,-0.125,0.625,0.875,0.625,0.25,-0.125,0,-0.5,0,-0.25,-0.5\n"
     "init xs 1 1 0.0625\n"
     "init ws 1 12 0.0625,0.03125,0.125,0.0625,0.03125,0.125,0.0625,0.03125,0.125,0.0625,"
     "0.03125,0.125\n"
     "init m 6 1,3 0,1,1\n"
     "init p 1 2,1,2,1,2 1,-1,-0.875,-0.625,1,0.375,0.75,-0.625\n"
     "node QAttention x,w,b,xs,ws,m,_,_,p y0,y1 domain=com.microsoft num_heads:i=2 "
     "unidirectional:i=1 scale:f=0.5 mask_filter_value:f=-2\n",
     "1 0.375 -13.02344 83.38281 1 0.375 -19.84375 115.0234;1 -1 6.316406 91.66406 10.38867 "
     "128.3438 -0.875 -0.625 13.81641 5.595703 14.70703 5.15625 1 0.375 30.44531 -4.15625 "
     "40.75781 -10.88281 0.75 -0.625 -13.02344 83.38281 -19.84375 115.0234"},
    {"init a 5 2,2 30000,-30000,3,-4\n"
     "init b 5 2,2 2,30000,-5,-32768\n"
     "node MatMulInteger16 a,b y0 domain=com.microsoft\n",
     "210000 1.88304e+09 26 221072"},
    {"init ids 6 2,2 3,0,1,4\n"
     "init seg 6 2,2 0,1,1,1\n"
     "init wt 2 5,4 184,94,125,0,158,212,169,39,136,68,247,225,47,130,240,216,181,163,10,189\n"
     "init pt 2 3,4 121,23,62,138,186,129,156,223,175,92,164,153\n"
     "init st 2 2,4 27,15,169,99,153,82,57,38\n"
     "init g 2 4 97,208,102,97\n"
     "init be 2 4 147,250,100,151\n"
     "init m 6 2,2 1,0,2,1\n"
     "init ws 1 - 0.0625\n"
     "init ps 1 1 0.03125\n"
     "init ss 1 - 0.0625\n"
     "init gs 1 - 0.015625\n"
     "init bs 1 - 0.03125\n"
     "init wz 2 - 100\n"
     "init pz 2 1 90\n"
     "init sz 2 - 80\n"
     "init gz 2 - 3\n"
     "init bz 2 - 5\n"
     "node QEmbedLayerNormalization ids,seg,wt,pt,st,g,be,m,ws,ps,ss,gs,bs,wz,pz,sz,gz,bz "
     "y0,y1 domain=com.microsoft epsilon:f=0.5\n",
     "2.872874 4.764441 4.810802 5.704108 6.741796 6.729706 2.817071 2.827077 6.231556 "
     "9.024685 2.726747 2.370747 6.183315 7.796686 0.5573699 5.041883;1 1"},
    {"init ids 6 2,2 3,0,1,4\n"
     "init wt 3 5,4 -8,12,-7,16,5,21,54,-42,7,-8,-18,-32,-54,-12,39,-49,-12,56,54,-35\n"
     "init pt 3 3,4 -60,20,-59,-24,-1,44,-49,19,3,-45,41,41\n"
     "init g 3 4 -3,53,12,48\n"
     "init be 3 4 55,8,-27,-43\n"
     "init ws 1 - 0.0625\n"
     "init ps 1 1 0.03125\n"
     "init gs 1 - 0.015625\n"
     "init bs 1 - 0.03125\n"
     "init wz 3 - 100\n"
     "init pz 3 1 90\n"
     "init gz 3 - 3\n"
     "init bz 3 - 5\n"
     "node QEmbedLayerNormalization ids,_,wt,pt,_,g,be,_,ws,ps,_,gs,bs,wz,pz,_,gz,bz y0,y1 "
     "domain=com.microsoft\n",
     "1.6812 0.7390771 -0.8425801 -1.977642 1.6101 0.9575251 -1.194183 -0.9494824 1.613395 "
     "0.9115139 -0.8787492 -2.460526 1.631696 1.263911 -0.9578742 -2.244801;0 0"},
    {"init a 1 2,5 0.5,-0.375,-0.625,1,-0.75,-0.375,0.25,0.625,0.25,0.75\n"
     "init b 2 8 12,100,146,112,99,95,10,27\n"
     "init m 1 1 0.5\n"
     "node MatMulBnb4 a,b,m y0 domain=com.microsoft K:i=5 N:i=3 block_size:i=16 "
     "quant_type:i=0\n",
     "0.1790365 -0.171875 -0.1634115 0.05013021 0.3020833 -0.2063802"},
    {"init a 1 2,7 0.125,0,1,-0.5,0.75,-0.5,-0.75,-0.625,-0.25,-0.625,0.875,0.625,0.625,"
     "-0.125\n"
     "init b 2 11 7,65,114,151,115,154,96,165,7,233,137\n"
     "init m 1 2 0.5,2\n"
     "node MatMulBnb4 a,b,m y0 domain=com.microsoft K:i=7 N:i=3 block_size:i=16 "
     "quant_type:i=1\n",
     "0.04024695 0.2523633 -1.180483 -0.07733989 0.3047756 2.28115"},
    {"init d 2 3,12 38,208,95,224,72,228,4,110,46,111,101,252,100,193,157,99,115,19,155,101,"
     "57,41,34,229,84,223,24,17,93,247,117,179,184,157,221,83\n"
     "init i 7 2 2,-3\n"
     "init s 1 3,2 -1,-0.75,1,-0.875,0.5,-0.125\n"
     "init z 2 3,1 253,243,30\n"
     "node GatherBlockQuantized d,i,s,z y0 domain=com.microsoft block_size:i=16\n",
     "-5 -4.5 0.5 -0.5 -3 -6.5 -6.5 -6.5 -0.5 -4.5 -3.5 0.5 -4.5 -3.5 -5.5 -1.5 -0.875 "
     "-1.25 -1.5 -1 -1.5 -1.5 -0.25 -0.5 7 11 13 -0 -2 8 13 -1 5 9 9 -1 9 13 -1 7 0.75 9.75 "
     "-0 6.75 7.5 6.75 2.25 -0"},
    {"init d 2 3,5 3,96,106,128,44,191,136,79,29,115,231,70,77,114,191\n"
     "init i 7 1,1 1\n"
     "init s 1 3,2 0,0.25,0.125,-0.125,0.375,0.75\n"
     "node GatherBlockQuantized d,i,s y0 domain=com.microsoft block_size:i=16 bits:i=2 "
     "quantize_axis:i=-1\n",
     "0.125 0.125 0.125 0 -0.25 0 -0.25 0 0.125 0.125 -0.25 -0.125 -0.125 0.125 -0.125 "
     "-0.25 -0.125 0.25 -0.125 0.125"},
    {"init d 2 2,17 61,181,161,53,23,184,156,128,117,99,34,96,65,234,16,251,95,77,103,118,"
     "125,178,17,219,183,54,81,216,72,84,228,96,153,178\n"
     "init i 7 - 1\n"
     "init s 1 2,2 0.375,0.125,0.125,0.25\n"
     "init z 2 2,2 55,222,38,220\n"
     "node GatherBlockQuantized d,i,s,z y0 domain=com.microsoft block_size:i=16 bits:i=8\n",
     "4.875 8.125 10 10.875 17.5 -2.625 22.625 18.125 2 5.375 22.25 4.25 5.75 23.75 7.25 "
     "14.375 -10.5"},
    {"init d 2 2,3 47,135,87,125,43,94\n"
     "init i 7 1 1\n"
     "init s 1 2,1 0,0.625\n"
     "node GatherBlockQuantized d,i,s y0 domain=com.microsoft block_size:i=16 bits:i=8\n",
     "-1.875 -53.125 -21.25"},
    {"init d 21 3,5 247,210,189,235,79,244,78,13\n"
     "init i 7 2 0,-1\n"
     "init s 1 1,5 0.625,-0.5,1,0.625,0.25\n"
     "init z 21 1,5 145,65,205\n"
     "node GatherBlockQuantized d,i,s,z y0 domain=com.microsoft block_size:i=16 quantize_axis:i=0 "
     "gather_axis:i=1\n",
     "3.75 0 6.25 -2.25 1.875 0"},
    {"init d 22 2,17 115,233,40,144,111,23,227,9,51,47,113,35,161,20,242,176,161\n"
     "init i 7 2 16,2\n"
     "init s 1 2,2 0.875,-0.125,0.625,0.375\n"
     "node GatherBlockQuantized d,i,s y0 domain=com.microsoft block_size:i=16 quantize_axis:i=1 "
     "gather_axis:i=-1\n",
     "-0.375 -6.125 -2.25 1.25"},
    {"init x 1 2 -0.125,0.75\n"
     "init a 6 - -2\n"
     "node ExpandDims x,a y0 domain=com.microsoft\n",
     "-0.125 0.75"},
    {"init x 1 2,2 1,-0.5,-0.875,0.25\n"
     "init p 7 1,4 0,1,1,-1\n"
     "init v 1 1 0.5\n"
     "node Pad x,p,v y0 domain=com.microsoft\n",
     "0.5 1 0.5 -0.875 0.5 0.5"},
    {"init x 1 3 0.375,0.625,0.25\n"
     "init p 7 2 2,1\n"
     "node Pad x,p y0 domain=com.microsoft mode:s=reflect\n",
     "0.25 0.625 0.375 0.625 0.25 0.625"},
    {"init x 1 7 0.5,0.875,0.875,0.875,0.75,0.5,0.875\n"
     "node UnfoldTensor x y0 domain=com.microsoft size:i=3 step:i=2\n",
     "0.5 0.875 0.875 0.875 0.875 0.75 0.75 0.5 0.875"},
    {"init x 1 2,4,2 -1,-1,0.625,-0.125,0.5,0,0.875,-0.875,0.375,-1,-0.75,0.75,-0.5,1,"
     "-0.375,0.625\n"
     "node UnfoldTensor x y0 domain=com.microsoft size:i=2 dim:i=1\n",
     "-1 0.625 -1 -0.125 0.625 0.5 -0.125 0 0.5 0.875 0 -0.875 0.375 -0.75 -1 0.75 -0.75 "
     "-0.5 0.75 1 -0.5 -0.375 1 0.625"},
    {"init x 1 6 2,1,1,3,4,3\n"
     "node Unique x y0,y1,y2 domain=com.microsoft\n",
     "2 1 3 4;0 1 1 2 3 2;1 2 2 1"},
    {"init a 1 2,3 1,-0.375,1,0.375,1,-0.375\n"
     "init b 1 3,3 0,0.5,1,-0.5,0,0.625,0.75,1,-0.625\n"
     "node CDist a,b y0 domain=com.microsoft metric:s=euclidean\n",
     "1.328768 1.59099 2.143304 1.510381 1.663017 0.4506939"},
    {"init a 1 2,3 1,-0.875,0.875,0.75,0.875,0.75\n"
     "init b 1 1,3 0.5,0.125,0.125\n"
     "node CDist a,b y0 domain=com.microsoft\n",
     "1.8125 1.015625"},
    {"init i 7 2,8 1,2,0,1,2,3,1,2,3,3,3,0,1,0,1,2\n"
     "init s 1 2,4 -0.875,0.875,0.875,-0.875,0.25,-0.25,0.5,0.25\n"
     "node NGramRepeatBlock i,s y0 domain=com.microsoft ngram_size:i=3\n",
     "-inf 0.875 0.875 -inf 0.25 -0.25 0.5 0.25"},
    {"init i 7 1,2 1,0\n"
     "init s 1 1,3 0.125,0,-0.875\n"
     "node NGramRepeatBlock i,s y0 domain=com.microsoft ngram_size:i=1\n",
     "-inf -inf -0.875"},
    /* Shorter than what is looked for. */
    {"init i 7 1,2 1,0\n"
     "init s 1 1,3 0.625,0.875,-0.625\n"
     "node NGramRepeatBlock i,s y0 domain=com.microsoft ngram_size:i=4\n",
     "0.625 0.875 -0.625"},
    {"init x 1 2,2,3,4 -0.125,-0.875,-0.125,-0.75,-0.25,1,-0.75,-0.75,0.375,-0.625,-1,-0.25,"
     "-0.625,0.25,0.125,0.625,0.25,-0.875,-0.875,0.875,0.5,0.5,0.625,-0.375,0.125,-0.625,-1,"
     "0.25,-0.625,0.25,0.875,-0.5,-0.5,-0.75,-0.375,0.625,0.375,0.375,-1,0.625,0.5,-0.625,"
     "0.25,0.5,-1,-0.875,-0.625,-1\n"
     "init r 1 2,4 0,0,1,1,0.25,0.75,0.5,-0.25\n"
     "init b 6 2 1,0\n"
     "init c 6 2 3,2\n"
     "node CropAndResize x,r,b,c y0 domain=com.microsoft extrapolation_value:f=-9\n",
     "0.125 0.25 -0.625 -0.5 -0.5 0.625 0.375 0.625 0.5 0.5 -1 -1 -0.515625 -9 -0.6328125 "
     "-9 -0.75 -9 -0.09375 -9 -0.265625 -9 -0.4375 -9"},
    {"init x 1 2,2,3,4 -0.125,-0.875,-0.125,-0.75,-0.25,1,-0.75,-0.75,0.375,-0.625,-1,-0.25,"
     "-0.625,0.25,0.125,0.625,0.25,-0.875,-0.875,0.875,0.5,0.5,0.625,-0.375,0.125,-0.625,-1,"
     "0.25,-0.625,0.25,0.875,-0.5,-0.5,-0.75,-0.375,0.625,0.375,0.375,-1,0.625,0.5,-0.625,"
     "0.25,0.5,-1,-0.875,-0.625,-1\n"
     "init r 1 1,4 0.25,0,0.75,0.5\n"
     "init b 6 1 1\n"
     "init c 6 2 1,4\n"
     "node CropAndResize x,r,b,c y0 domain=com.microsoft mode:s=nearest\n",
     "-0.625 0.25 0.25 0.875 0.5 -0.625 -0.625 0.25"},
    {"init x 2 1,3,4,2 198,244,67,53,202,212,131,38,213,131,39,34,105,176,103,215,2,108,134,"
     "244,60,211,18,86\n"
     "node NhwcMaxPool x y0 domain=com.microsoft kernel_shape:is=2,2 strides:is=2,1 "
     "pads:is=1,0,0,1\n",
     "198 244 202 212 202 212 131 38 213 244 134 244 105 215 103 215"},
    {"init x 2 1,3,3,2 191,147,240,192,234,211,34,238,216,37,250,190,80,35,99,232,201,57\n"
     "init xs 1 - 0.0625\n"
     "init xz 2 - 100\n"
     "init w 2 2,2,2,2 125,218,164,78,29,248,59,132,177,82,132,72,214,155,45,85\n"
     "init ws 1 2 0.03125,0.0625\n"
     "init wz 2 2 120,120\n"
     "init ys 1 - 1\n"
     "init yz 2 - 128\n"
     "init b 6 2 400,-900\n"
     "node QLinearConv x,xs,xz,w,ws,wz,ys,yz,b y0 domain=com.microsoft channels_last:i=1 "
     "kernel_shape:is=2,2\n",
     "138 97 174 168 119 135 167 65"},
    {"init x 2 1,1,4 176,173,79,39\n"
     "init xs 1 - 0.0625\n"
     "init xz 2 - 100\n"
     "init w 2 1,1,2 38,63\n"
     "init ws 1 - 0.03125\n"
     "init wz 2 - 120\n"
     "init ys 1 - 0.5\n"
     "init yz 2 - 128\n"
     "node QLinearConv x,xs,xz,w,ws,wz,ys,yz y0 domain=com.microsoft kernel_shape:is=2\n",
     "87 109 148"},
    {"init x 2 1,3,2,2 202,222,87,153,127,67,135,38,124,35,62,63\n"
     "init xs 1 - 0.0625\n"
     "init xz 2 - 100\n"
     "init ys 1 - 0.03125\n"
     "init yz 2 - 20\n"
     "node QLinearAveragePool x,xs,xz,ys,yz y0 domain=com.microsoft kernel_shape:is=2,2 "
     "channels_last:i=1\n",
     "96 60 44 0"},
    {"init x 2 1,3,2,2 5,98,184,166,198,214,15,198,29,86,22,38\n"
     "init xs 1 - 0.0625\n"
     "init xz 2 - 100\n"
     "init ys 1 - 0.03125\n"
     "init yz 2 - 20\n"
     "node QLinearGlobalAveragePool x,xs,xz,ys,yz y0 domain=com.microsoft channels_last:i=1\n",
     "0 87"},
    {"init x 1 1,1,2,2 0,-0.125,-0.25,-0.125\n"
     "init w 1 1,1,3,2 -0.125,0.125,0.25,-0.25,0.5,0.25\n"
     "init p 7 4 1,0,0,1\n"
     "init b 1 1 0\n"
     "node ConvTransposeWithDynamicPads x,w,p,b y0 domain=com.microsoft strides:is=2,1\n",
     "0 -0.03125 0.03125 -0.078125 -0.0625 0.03125 -0.125 -0.125"},
    {"init q 1 2,1,2 -0.75,-0.75,0.625,0\n"
     "init k 1 2,1,2 0.25,0.25,0.5,-1\n"
     "init v 1 2,1,2 0,-0.75,-0.25,0.875\n"
     "init m 6 2,3 0,1,1,1,1,1\n"
     "init ab 1 1,1,1,3 0.125,-0.875,0.125\n"
     "init pk 1 2,1,4,2 -0.75,0.5,1,1,0.25,0.75,-0.25,-0.75,0,-0.125,0.375,1,-0.5,0.75,"
     "-0.75,-0.375\n"
     "init pv 1 2,1,4,2 0.625,-0.5,0.375,-0.125,0,1,0.625,0.75,0.125,1,1,-0.75,-0.625,"
     "-0.375,0.125,0.75\n"
     "init n 6 - 2\n"
     "init w 6 - 2\n"
     "init c 6 1,2,4 1,1,0,0,0,1,0,0\n"
     "init b 1 6 0,1,-0.25,0.875,0.25,0.5\n"
     "node DecoderMaskedMultiHeadAttention q,k,v,m,ab,pk,pv,n,w,c,b y0,y1,y2 "
     "domain=com.microsoft num_heads:i=1 past_present_share_buffer:i=1 scale:f=0.5\n",
     "0.429512 -0.3696747 0.4852825 0.1390575;-0.75 0.5 1 1 0 1.125 -0.25 -0.75 0 -0.125 "
     "0.375 1 0.25 -0.125 -0.75 -0.375;0.625 -0.5 0.375 -0.125 0.25 -0.25 0.625 0.75 0.125 "
     "1 1 -0.75 0 1.375 0.125 0.75"},
    {"init q 1 1,1,4 -0.5,0.25,0.625,0.875\n"
     "init k 1 1,1,4 0.75,1,-0.75,0.625\n"
     "init v 1 1,1,4 -0.125,0.375,-0.5,-1\n"
     "init pk 1 1,2,3,2 -0.875,1,0.875,-0.375,-0.125,-0.5,-0.75,0.75,0.375,-0.875,-0.625,"
     "0.125\n"
     "init pv 1 1,2,3,2 0.875,1,-0.625,0.25,-1,-0.75,-0.625,-0.125,-0.375,0.5,-0.125,-0.375\n"
     "init n 6 1 1\n"
     "node DecoderMaskedMultiHeadAttention q,k,v,_,_,pk,pv,n y0,y1,y2,y3 "
     "domain=com.microsoft num_heads:i=2 past_present_share_buffer:i=1 output_qk:i=1\n",
     "0.5148064 0.774879 -0.5649157 -0.5455903;-0.875 1 0.75 1 -0.125 -0.5 -0.75 0.75 -0.75 "
     "0.625 -0.625 0.125;0.875 1 -0.125 0.375 -1 -0.75 -0.625 -0.125 -0.5 -1 -0.125 "
     "-0.375;0.4861359 -0.08838835 0.1325825 0.05524272"},
    {"init q 1 1,1,4 0.875,0.25,0.375,0.5\n"
     "init k 1 1,2,3,2 -0.375,0.875,-1,-0.375,-0.75,-1,1,-0.875,-0.125,0.625,0.375,0.75\n"
     "init v 1 1,2,3,2 -1,0,-1,-0.625,0.75,-0.875,0.125,-1,-0.375,0.875,-0.375,-0.375\n"
     "init m 6 1,3 1,0,1\n"
     "node DecoderMaskedMultiHeadAttention q,k,v,m y0 domain=com.microsoft num_heads:i=2 "
     "mask_filter_value:f=-2\n",
     "-0.3936774 -0.3312003 -0.1881318 -0.5288498"},
    /* ONNX Runtime has no kernel: by its formula. */
    {"init x 2 2,2,2 156,64,249,242,16,48,51,45\n"
     "init xs 1 - 0.0625\n"
     "init xz 2 - 100\n"
     "init ys 1 - 0.125\n"
     "init yz 2 - 20\n"
     "node QLinearReduceMean x,xs,xz,ys,yz y0 domain=com.microsoft axes:is=0,-1 keepdims:i=0\n",
     "6 43"},
    /* Without a zero point the result is of the type of x. */
    {"init x 3 1,4 20,-39,-5,-69\n"
     "init xs 1 - 0.0625\n"
     "init ys 1 - 0.0078125\n"
     "node QLinearSigmoid x,xs,_,ys y0 domain=com.microsoft\n",
     "99 10 54 2"},
    {"init x 1 2,2,2 0,2,1,0.5,1,-0.5,0.25,3\n"
     "node Inverse x y0 domain=com.microsoft\n",
     "-0.25 1 0.5 0 0.96 0.16 -0.08 0.32"},
    {"init x 1 4,4 2,-1,0.5,0,0.25,1,3,-1,1,0,0.5,2,-2,1,1,0.125\n"
     "node Inverse x y0 domain=com.microsoft\n",
     "-0.5338209 0.3436929 0.2266911 -0.8775138 -1.738574 0.6946983 0.4369287 -1.433272 "
     "0.6581353 0.01462523 -0.03290677 0.6435101 0.1023766 -0.1755027 0.3948812 0.2778794"},
    {"init x 1 1,2,3 0.875,0.75,0.625,0.75,-0.875,0.625\n"
     "init w 1 2,1,3 1,-0.5,-0.75,-0.875,0.625,1\n"
     "init b 1 2 0.25,0.25\n"
     "init p 1 1,2,2 0.625,-1,0.75,0.875\n"
     "node CausalConvWithState x,w,b,p y0,y1 domain=com.microsoft activation:s=silu "
     "ndim:i=1 dilation:i=1\n",
     "0.4832384 -0.2590826 0.160271 0.6314701 -0.2623435 -0.1373849;0.75 0.625 -0.875 0.625"},
    {"init q 1 1,2,4 -0.75,1,0.75,-0.5,0,0.625,0.875,-0.875\n"
     "init k 1 1,2,2 0.375,-0.125,-0.375,0.625\n"
     "init v 1 1,2,2 0.375,-0.25,0.75,0\n"
     "init s 1 1,1,2,2 0.75,-0.875,0.875,0.625\n"
     "init d 1 1,2,1 -0.125,0\n"
     "init be 1 1,2,1 0.375,0.5\n"
     "node LinearAttention q,k,v,s,d,be y0,y1 domain=com.microsoft q_num_heads:i=2 "
     "kv_num_heads:i=1 state_window:i=0\n",
     "0.1709492 0.7878355 0.09835827 -0.5946278 0.4103704 0.1551386 -0.2075135 "
     "-0.6129658;0.5931698 -0.6396637 0.9285623 0.3510386"},
    {"init x 1 2,3 -0.75,0.75,0.375,-0.25,-0.875,0.375\n"
     "init y 1 2,3 -0.375,0.75,-0.375,0.25,-0.625,0.125\n"
     "init g 1 2,1 -0.875,0.5\n"
     "node GatedAdd x,y,g y0 domain=com.microsoft\n",
     "-0.421875 0.09375 0.703125 -0.125 -1.1875 0.4375"},
    {"init x 1 4 -0.875,0.5,0.5,-0.125\n"
     "node ScaledSiLU x y0 domain=com.microsoft alpha:f=2\n",
     "-0.2590826 0.7310586 0.7310586 -0.1094559"},
    {"init x 1 4 0.625,0.125,0.75,0.5\n"
     "init s 1 - -1.5\n"
     "node ScaledSiLU x,s y0 domain=com.microsoft\n",
     "-0.2638178 -0.0849866 -0.2757207 -0.240616"},
    {"init x 1 2,4 0.875,-0.875,-1,0.25,0.5,0.5,0.625,-0.25\n"
     "init w 1 2 0.75,0\n"
     "init g 1 2,4 -0.75,-0.625,0.625,0.375,0.75,1,0.625,-0.375\n"
     "node GatedRMSNorm x,w,g y0 domain=com.microsoft epsilon:f=0.125\n",
     "-0.1673194 0 -0.3768984 0 0.3119327 0 0.3218383 0"},
    {"init x 1 1,3 0.125,-0.125,-0.5\n"
     "init w 1 3 0.875,1,0.125\n"
     "init g 1 1,3 -0.625,-0.125,-0.125\n"
     "node GatedRMSNorm x,w,g y0 domain=com.microsoft activation:s=sigmoid\n",
     "0.1245354 -0.1913728 -0.09568639"},
    {"init a 1 1,2,3 0.375,0.875,-1,-0.875,-0.75,-1\n"
     "init d 1 3 0.75,-0.375,-0.75\n"
     "init s 1 3 -1,-1,-0.75\n"
     "init b 1 1,2,3 0.875,-0.75,0.5,0.625,1,1\n"
     "node LinearAttentionGate a,d,s,b y0,y1 domain=com.microsoft\n",
     "-1.40615 -0.974077 -0.1201681 -0.632599 -0.2811501 -0.1201681;0.705785 0.3208213 "
     "0.6224593 0.6513548 0.7310586 0.7310586"},
    /* a query for two values */
    {"init q 1 1,2,1,2 -0.375,0.625,-0.25,0.25\n"
     "init k 1 1,2,1,2 -0.125,0.5,-0.375,-0.875\n"
     "init v 1 1,2,2,1 -0.375,0.25,0.25,1\n"
     "init g 1 1,2,2 -0.5,-0.125,1,-0.875\n"
     "init b 1 1,2,2 0.375,1,0.875,0.375\n"
     "init s 1 1,2,1,2 0.875,-0.625,0.5,0.375\n"
     "init al 1 2 0,1\n"
     "init dt 1 2 0.75,-0.625\n"
     "node GatedDeltaNet q,k,v,_,g,b,s,al,dt y0,y1 domain=com.microsoft "
     "gate_activation:s=softplus beta_activation:s=sigmoid\n",
     "-0.2511757 0.04991061 -0.03333675 -0.05445432;-0.001885038 -0.1904662 -0.16285 "
     "-0.4708902"},
    /* two sequences, side by side; an epsilon tells */
    {"init q 1 2,6 0.001953125,0.00146484375,-0.00048828125,0.000732421875,0.001220703125,"
     "-0.001220703125,-0.0009765625,-0.001220703125,-0.000244140625,0.001953125,"
     "-0.00048828125,-0.000732421875\n"
     "init g 1 2,1,2 0.875,-0.125,-0.875,0.375\n"
     "init b 1 2,1 0.5,-0.125\n"
     "init s 1 2,1,2,2 1,-1,0.75,-0.5,0.625,0,0.375,0.5\n"
     "init al 1 1 0.875\n"
     "init dt 1 1,2 0.25,0.25\n"
     "node GatedDeltaNet q,_,_,_,g,b,s,al,dt y0,y1 domain=com.microsoft "
     "gate_activation:s=kda gate_lower_bound:f=-2 qk_l2_norm:i=1 scale:f=0.5\n",
     "-0.02921487 -0.0002969354 -0.1125987 -0.1024582;0.1110496 -0.2533015 0.09166328 "
     "-0.1232873 0.4345029 -0.00525123 0.2595036 0.1039163"},
    {"init x 1 1,2,8 -0.125,-1,-0.625,-0.875,0.625,-0.875,-0.625,-0.625,0.5,-0.375,0,0.375,"
     "0.125,0,-0.25,1\n"
     "init p 7 3,1,2 0,1,1,2,2,0\n"
     "init c 1 3,3 -0.625,0.625,-0.75,0,0.25,-0.5,-0.5,-0.75,-1\n"
     "init s 1 3,3 -0.5,-0.625,0.375,0.875,-1,0.5,-0.25,0.125,1\n"
     "node MRotaryEmbedding x,p,c,s y0 domain=com.microsoft mrope_section:is=1,1,1 "
     "mrope_layout:i=1 num_heads:i=1 rotary_embedding_dim:i=6 scale:f=0.5\n",
     "-0.1796875 0.1875 0.75 0.3046875 0.578125 0.125 -0.625 -0.625 -0.1640625 0.1328125 -0 "
     "0.21875 -0.0703125 0 -0.25 1"},
    {"init x 1 1,1,1,8 -0.25,-0.75,0.625,0.875,-0.5,0.125,0.25,-0.75\n"
     "init p 7 3,1,1 0,1,2\n"
     "init c 1 3,4 -1,-1,0.25,0.25,1,0.25,0.5,-0.125,-0.875,-0.375,0.25,0.375\n"
     "init s 1 3,4 -0.375,-0.75,0.875,-0.625,-1,-0.25,-1,0.375,-0.875,-0.375,-0.375,0.5\n"
     "node MRotaryEmbedding x,p,c,s y0 domain=com.microsoft mrope_section:is=1,1,2 "
     "interleaved:i=1\n",
     "-0.03125 0.84375 0.375 0.0625 -0.078125 0.21875 0.46875 -0.15625"},
    {"init x 1 1,6 0.875,0.375,0.125,-0.625,0.375,0.5\n"
     "init w 1 6 -1,0.125,-0.75,-0.875,-0.25,0.625\n"
     "node BranchwiseRMSNorm x,w y0 domain=com.microsoft num_branches:i=2 epsilon:f=0.125\n",
     "-1.330821 0.07129398 -0.142588 0.8808924 -0.1510101 0.5033671"},
    {"init x 1 1,2,3 0.25,0.875,0.5,-0.375,0.125,-0.5\n"
     "node BranchwiseRMSNorm x y0 domain=com.microsoft\n",
     "0.417023 1.459581 0.834046 -1.019012 0.3396706 -1.358682"},
    {"init x 1 1,6 -0.5,0.375,-0.625,-0.125,-0.125,0\n"
     "init p 1 1,6 -0.5,-0.625,0.5,0,0.875,0\n"
     "node HyperConnectionPreMix x,p y0 domain=com.microsoft num_branches:i=2 "
     "reduction_scale:f=0.5\n",
     "0.125 -0.171875 -0.15625"},
    {"init x 1 1,2,3 0.625,0.625,-0.75,0.625,0.625,0.25\n"
     "init b 1 1,3 -1,0.75,-0.75\n"
     "init p 1 1,2 0.875,0.375\n"
     "init m 1 1,2,2 -0.25,-0.375,0.125,0.75\n"
     "node HyperConnectionPostMix x,b,p,m y0 domain=com.microsoft\n",
     "-0.953125 0.578125 -0.4375 -0.140625 0.515625 0.1875"},
    {"init x 1 1,6 -0.375,0.375,-0.25,0.25,0.375,0.25\n"
     "init b 1 1,3 -0.625,0.875,0.125\n"
     "init p 1 1,2,3 0.75,-0.25,-1,1,1,0.5\n"
     "node HyperConnectionPostMix x,b,p y0 domain=com.microsoft num_branches:i=2\n",
     "-0.84375 0.15625 -0.375 -0.375 1.25 0.3125"},
    {"init k 1 1,1,2,2 -0.125,0.25,-0.375,-0.625\n"
     "init q 1 1,1,2,2 0.75,-0.625,0.875,0.25\n"
     "init v 1 1,1,2 0.625,-0.75\n"
     "init ks 1 2,2 0.5,0.5,-1,1\n"
     "init qs 1 2,2 -0.5,0.5,0.625,-0.5\n"
     "init cs 1 2,2 1,-0.25,-0.5,0.25\n"
     "node EngramGate k,q,v,ks,qs,cs y0,y1 domain=com.microsoft\n",
     "0.2683372 -0.3220047 0.428153 -0.5137836;0.9053059 0.2715918 -0.4526686 -0.2716012"},
};

#define MS "domain=com.microsoft"

static const refused refusals[] = {
    {"in x 2 1,2,4\nin w 2 4,12\nin b 1 12\nin s 1 -\nout y 1 *\n"
     "node QAttention x,w,b,s,s y num_heads:i=2 do_rotary:i=1 " MS "\n",
     "QAttention with do_rotary"},
    {"in x 2 1,2,4\nin w 2 4,12\nin s 1 -\nout y 1 *\n"
     "node QAttention x,w,_,s,s y num_heads:i=2 " MS "\n",
     "QAttention needs input 2, which is left out"},
    {"in x 4 2,2\nout y 6 *\nnode MatMulInteger16 x,x y " MS "\n",
     "input 0 has a wrong type (got u16, need i16)"},
    {"in i 6 1,2\nin t 2 4,4\nin v 2 4\nin s 1 -\nin z 2 -\nout y 1 *\n"
     "node QEmbedLayerNormalization i,i,t,t,_,v,v,_,s,s,_,s,s,z,z,_,z,z y " MS "\n",
     "inputs 1 and 4: one is there, one is not"},
    {"in i 6 1,2\nin t 2 4,4\nin v 2 4\nin s 1 -\nin z 2 -\nout y 1 *\n"
     "node QEmbedLayerNormalization i,_,t,t,_,v,v,_,s,s,_,s,s,z,z,_,z y " MS "\n",
     "QEmbedLayerNormalization needs input 17, which is left out"},
    {"in a 1 2,4\ninit b 2 6 1,2,3,4,5,6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=3 block_size:i=16 quant_type:i=2 " MS "\n",
     "quant_type is unknown (got 2, need 0 (FP4) or 1 (NF4))"},
    {"in a 1 2,4\ninit b 2 6 1,2,3,4,5,6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=3 block_size:i=24 quant_type:i=1 " MS "\n",
     "block_size is not supported (got 24, need a power of two from 16)"},
    {"in a 1 2,4\ninit b 2 6 1,2,3,4,5,6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=4 block_size:i=16 quant_type:i=1 " MS "\n",
     "input 1 has a wrong type or size (got u8 and 6, need u8 and 8)"},
    {"in a 1 2,4\ninit b 2 6 1,2,3,4,5,6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=0 block_size:i=16 quant_type:i=1 " MS "\n",
     "K or N out of range (got 4, 0)"},
    {"in a 1 2,4\nin b 2 6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=3 block_size:i=16 quant_type:i=1 " MS "\n",
     "input 1 must be a constant"},
    {"in a 1 2,4\ninit b 2 6 1,2,3,4,5,6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=3 block_size:i=16 quant_type:i=1 transB:i=0 " MS "\n",
     "transB = 0, a product of training, is not supported"},
    {"in d 17 3,16\nin i 7 2\nin s 1 3,1\nout y 1 *\n"
     "node GatherBlockQuantized d,i,s y block_size:i=16 " MS "\n",
     "data of f8e4m3fn are not supported (need u8, u4 or i4)"},
    {"in d 2 3,8\nin i 7 2\nin s 1 3,1\nout y 1 *\n"
     "node GatherBlockQuantized d,i,s y block_size:i=16 gather_axis:i=2 " MS "\n",
     "gather_axis out of range (got 2, need [-2, 1])"},
    {"in d 2 3,8\nin i 7 2\nin s 1 3,1\nout y 1 *\n"
     "node GatherBlockQuantized d,i,s y block_size:i=16 gather_axis:i=1 " MS "\n",
     "data of u8 are gathered on the first axis and quantised along the last (got 1 and 1 of 2)"},
    {"in d 2 3,8\nin i 7 2\nin s 1 3,1\nout y 1 *\n"
     "node GatherBlockQuantized d,i,s y block_size:i=16 bits:i=3 " MS "\n",
     "3 bits in data of u8"},
    {"in d 2 3,8\nin i 7 2\nin s 1 3,2\nout y 1 *\n"
     "node GatherBlockQuantized d,i,s y block_size:i=16 " MS "\n",
     "dimensions of the input's blocks and of the scale"},
    {"in x 1 2,2\ninit a 6 - 3\nout y 1 *\nnode ExpandDims x,a y " MS "\n", "ExpandDims_0: "},
    {"in x 1 5\nout y 1 *\nnode UnfoldTensor x y size:i=6 " MS "\n",
     "size out of range (got 6, need [1, 5])"},
    {"in x 1 5\nout y 1 *\nnode UnfoldTensor x y size:i=2 dim:i=1 " MS "\n",
     "dim out of range (got 1, need [-1, 0])"},
    {"in x 1 5\nout y 1 *\nnode UnfoldTensor x y size:i=2 step:i=0 " MS "\n",
     "step out of range (got 0, "},
    {"in x 1 5\nout y 1 *\nnode Unique x y,i,n,m " MS "\n",
     "Unique has too many outputs (got 4, need 3)"},
    {"in x 1 2,5\nout y 1 *\nnode CDist x,x y metric:s=cosine " MS "\n",
     "metric is not supported (got 'cosine', need euclidean or sqeuclidean)"},
    {"in x 1 5\nout y 1 *\nnode CDist x,x y " MS "\n", "an input's rank out of range (got 1, "},
    {"in i 7 1,5\nin s 1 1,9\nout y 1 *\nnode NGramRepeatBlock i,s y " MS "\n",
     "ngram_size out of range (got 0, "},
    {"in x 1 1,2,4,4\nin r 1 3,4\nin b 6 3\nin c 6 2\nout y 1 *\n"
     "node CropAndResize x,r,b,c y " MS "\n",
     "crop_size must be a constant"},
    {"in x 1 1,2,4,4\nin r 1 3,4\nin b 6 3\ninit c 6 2 2,0\nout y 1 *\n"
     "node CropAndResize x,r,b,c y " MS "\n",
     "crop_size out of range (got 0, "},
    {"in x 1 1,2,4,4\nin r 1 3,4\nin b 6 3\ninit c 6 2 2,2\nout y 1 *\n"
     "node CropAndResize x,r,b,c y mode:s=cubic " MS "\n",
     "mode is unknown (got 'cubic', need bilinear or nearest)"},
    {"in x 2 3,4\nout y 2 *\nnode NhwcMaxPool x y kernel_shape:is=2 " MS "\n",
     "input 0 has a wrong rank (got 2, need at least 3)"},
    {"in x 1 1,1,4\nin w 1 1,1,2\nin p 7 2\nout y 1 *\n"
     "node ConvTransposeWithDynamicPads x,w,p y " MS "\n",
     "input 2, the pads, must be a constant"},
    {"in x 1 1,1,4\nin w 1 1,1,2\ninit p 7 3 0,0,0\nout y 1 *\n"
     "node ConvTransposeWithDynamicPads x,w,p y " MS "\n",
     "ConvTransposeWithDynamicPads_0: "},
    {"in x 2 1,1,4\nin s 1 -\nin z 2 -\nout y 2 *\n"
     "node QLinearSigmoid x,s,z,s,z y channels_last:i=1 " MS "\n",
     "no attribute 'channels_last'"},
    {"in q 1 1,1,4\nin k 1 1,2,3,2\nout y 1 *\n"
     "node DecoderMaskedMultiHeadAttention q,k,k,_,_,k,k y num_heads:i=2 " MS "\n",
     "DecoderMaskedMultiHeadAttention with a past that shares no buffer"},
    {"in q 1 1,1,4\nin k 1 1,2,3,2\nout y 1 *\nnode DecoderMaskedMultiHeadAttention q,q,q,_,_,k,k "
     "y num_heads:i=2 past_present_share_buffer:i=1 " MS "\n",
     "input 7, the past sequence length, is missing"},
    {"in q 1 1,1,4\nout y 1 *\nnode DecoderMaskedMultiHeadAttention q,q,q y num_heads:i=2 " MS "\n",
     "keys and values without a past that are not of rank 4"},
    {"in q 1 4,1,4\nin k 1 4,2,3,2\nin a 1 4,2,1,2\nin n 6 -\nin c 6 2,2,3\nout y 1 *\n"
     "node DecoderMaskedMultiHeadAttention q,q,q,_,a,k,k,n,n,c y num_heads:i=2 "
     "past_present_share_buffer:i=1 " MS "\n",
     "DecoderMaskedMultiHeadAttention with beams and a bias of each sequence"},
    {"in x 1 2,3\nout y 1 *\nnode Inverse x y " MS "\n", "rows and columns of a square matrix"},
    {"in x 1 3\nout y 1 *\nnode Inverse x y " MS "\n", "Inverse needs a matrix (got rank 1)"},
    {"in x 1 1,2,3\nin w 1 2,1,3\nout y 1 *\nout s 1 *\n"
     "node CausalConvWithState x,w y,s dilation:i=2 " MS "\n",
     "attribute 'dilation' (got 2, need 1)"},
    {"in q 1 1,2,4\nin d 1 1,2,2\nout y 1 *\nout s 1 *\n"
     "node LinearAttention q,q,q,_,d,d y,s q_num_heads:i=2 kv_num_heads:i=2 state_window:i=3 " MS
     "\n",
     "attribute 'state_window' (got 3, need 0)"},
    {"in x 1 2\nout y 1 *\nnode MoE x,x,x,_,x y " MS "\n", "which experts' weights a row needs"},
    {"in x 1 1,2,4,4\nin r 1 3,3\nin b 6 3\ninit c 6 2 2,2\nout y 1 *\n"
     "node CropAndResize x,r,b,c y " MS "\n",
     "a box's numbers out of range (got 3, "},
    {"in x 1 2,3\nin g 1 2,1\nout y 1 *\nnode GatedAdd x,x,x,g y " MS "\n",
     "GatedAdd with gate_weight is not supported"},
    {"in x 1 2,4\nin w 1 2\nout y 1 *\nnode GatedRMSNorm x,w,x y activation:s=tanh " MS "\n",
     "activation is unknown (got 'tanh', need silu, swish or sigmoid)"},
    {"in q 1 2,3,16\nin s 1 2,1099511627776,1099511627776,4\nout y 1 *\nnode GatedDeltaNet "
     "q,_,_,_,_,_,s y " MS "\n",
     "dimension 1 of input 6 is too large (got 1099511627776, need at most 2147483647)"},
    {"in q 1 4,1,2\nin s 1 2,1,2,2\nin c 6 3\nout y 1 *\nnode GatedDeltaNet q,q,q,c,_,_,s y "
     "update_rule:s=linear " MS "\n",
     "GatedDeltaNet with cu_seqlens: sequences of one length each alone"},
    {"in q 1 4,1,2\nout y 1 *\nnode GatedDeltaNet q,q,q y update_rule:s=linear " MS "\n",
     "input 6, the initial state, is missing"},
    {"in q 1 1,4,2,2\nin v 1 1,4,3,2\nout y 1 *\nnode GatedDeltaNet q,q,v y "
     "update_rule:s=linear " MS "\n",
     "must be a multiple of the query's (got 3 and 2)"},
    {"in q 1 1,4,2,2\nin g 1 1,4,2\nout y 1 *\nnode GatedDeltaNet q,q,q,_,g,g y "
     "gate_activation:s=kda " MS "\n",
     "gate_activation 'kda' needs a_log and dt_bias"},
    {"in x 1 1,2,4\nin p 7 3,1,2\nin c 1 5,2\nout y 1 *\nnode MRotaryEmbedding x,p,c,c y "
     "num_heads:i=1 mrope_section:is=1,2,1 " MS "\n",
     "three sizes whose sum is 2, and 0 or 1 (got 3 sizes, and 0)"},
    {"in x 1 6\nout y 1 *\nnode BranchwiseRMSNorm x y " MS "\n",
     "input 0 has a wrong rank (got 1, need 2 to "},
    {"in x 1 1,2,3\nin p 1 1\nout y 1 *\nnode HyperConnectionPreMix x,p y " MS "\n",
     "input 1 has a wrong rank (got 1, need 2 or 3)"},
    {"in k 1 1,1,2,2\nin v 1 1,1,2\nin w 1 2,2\nout y 1 *\nout z 1 *\n"
     "node EngramGate k,k,v,w,w y,z " MS "\n",
     "output 1 needs input 5, which is left out"},
    {"in q 1 1,1,4\nin k 1 1,2,3,2\nout y 1 *\nnode DecoderMaskedMultiHeadAttention q,k,k y "
     "num_heads:i=2 unidirectional:i=1 " MS "\n",
     "no attribute 'unidirectional'"},
    {"in x 2 4,8\nin i 7 2\nout y 1 *\nnode GatherPacked x,i y " MS "\n",
     "a packed format of ONNX Runtime's own"},
    {"in x 1 2,4\nout y 1 *\nnode GatedRMSNorm x,x,x y " MS "\n",
     "an input has a wrong rank (got 2 and 2, need at least 1, and 1)"},
    {"in a 1 1,2,3\nin d 1 3\nout y 1 *\nout b 1 *\nnode LinearAttentionGate a,d,d y,b " MS "\n",
     "beta needs input 3, which is left out"},
    {"in x 2 1,4,4,2\nin s 1 3\nin z 2 -\nout y 2 *\n"
     "node QLinearGlobalAveragePool x,s,z,s,z y channels_last:i=1 " MS "\n",
     "QLinearGlobalAveragePool_0: "},
};

static void test_computed(void **state)
{
    (void)state;
    expect_computed(cases, ZC_COUNTOF(cases));
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused(refusals, ZC_COUNTOF(refusals));
}

typedef struct shaped {
    const char *lines, *has;
} shaped;

/* Whatever is open stays open. */
static const shaped shapes[] = {
    {"in x 2 n,s,4\nin w 2 4,12\nin b 1 12\nin f 1 -\nin p 1 2,n,2,p,2\nout y 1 *\nout r 1 *\n"
     "node QAttention x,w,b,f,f,_,_,_,p y,r num_heads:i=2 " MS "\n",
     "%y: f32[n,s,4]"},
    {"in i 6 n,s\nin t 2 9,4\nin v 2 4\nin f 1 -\nin z 2 -\nout y 1 *\nout m 6 *\n"
     "node QEmbedLayerNormalization i,_,t,t,_,v,v,_,f,f,_,f,f,z,z,_,z,z y,m " MS "\n",
     "%y: f32[n,s,4] = LayerNormalization("},
    {"in a 1 n,s,4\ninit b 2 6 1,2,3,4,5,6\ninit m 1 1 1\nout y 1 *\n"
     "node MatMulBnb4 a,b,m y K:i=4 N:i=3 block_size:i=16 quant_type:i=1 " MS "\n",
     "%y: f32[n,s,3] = Linear("},
    {"in d 2 3,20\nin i 7 n,s\nin s 1 3,3\nin z 2 3,2\nout y 1 *\n"
     "node GatherBlockQuantized d,i,s,z y block_size:i=16 " MS "\n",
     "%y: f32[n,s,40] = DequantizeLinear("},
    {"in x 1 a,b,c\nout y 1 *\nnode UnfoldTensor x y size:i=3 step:i=2 dim:i=1 " MS "\n",
     "%y: f32[a,"},
    {"in i 7 n,s\nin x 1 n,9\nout y 1 *\nnode NGramRepeatBlock i,x y ngram_size:i=3 " MS "\n",
     "%y: f32[n,9] = ScatterElements("},
    {"in x 1 n,c,h,w\nin r 1 b,4\nin i 6 b\ninit s 6 2 5,6\nout y 1 *\n"
     "node CropAndResize x,r,i,s y " MS "\n",
     "%y: f32[b,c,5,6] = Transpose("},
    {"in a 1 m,8\nin b 1 n,8\nout y 1 *\nnode CDist a,b y " MS "\n", "%y: f32[m,n] = "},
    {"in x 2 n,h,8,3\nout y 2 *\nnode NhwcMaxPool x y kernel_shape:is=2,2 strides:is=2,2 " MS "\n",
     "%y: u8[n,"},
    {"in q 1 b,1,4\nin k 1 b,2,m,2\nin n 6 -\nin c 6 t,w,m\nout y 1 *\nout p 1 *\n"
     "node DecoderMaskedMultiHeadAttention q,q,q,_,_,k,k,n,n,c y,p num_heads:i=2 "
     "past_present_share_buffer:i=1 " MS "\n",
     "%y: f32[b,1,4] = Attention("},
    {"in q 1 t,2,4\nin v 1 t,6,4\nin s 1 n,6,4,4\nout y 1 *\nout e 1 *\n"
     "node GatedDeltaNet q,q,v,_,_,_,s y,e update_rule:s=linear " MS "\n",
     "%y: f32[t,6,4] = Reshape("},
    {"in x 1 n,s,8\nin p 7 3,n,s\nin c 1 9,4\nout y 1 *\nnode MRotaryEmbedding x,p,c,c y "
     "num_heads:i=1 mrope_section:is=2,1,1 " MS "\n",
     "%y: f32[n,s,8] = RotaryEmbedding("},
    {"in x 1 n,m,m\nout y 1 *\nnode Inverse x y " MS "\n", "%y: f32[n,m,m] = Inverse(%x)"},
    {"in x 1 n,t,8\nin w 1 4\nout y 1 *\nnode GatedRMSNorm x,w,x y " MS "\n",
     "%y: f32[n,t,8] = Mul("},
};

static void test_symbolic(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(shapes); i++) {
        zc_graph *g = NULL;
        zc_buf text = {0};
        zc_diag *diag = zc_diag_create();
        if (import_lines("", shapes[i].lines, &g, diag) != ZC_OK)
            fail_msg("case %zu: %s", i, zc_diag_text(diag, 0));
        zc_graph_print(g, false, &text);
        if (!strstr(text.data, shapes[i].has))
            fail_msg("case %zu: no \"%s\" in\n%s", i, shapes[i].has, text.data);
        zc_buf_fini(&text);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_symbolic),
    };
    return cmocka_run_group_tests_name("import_ms", tests, NULL, NULL);
}
