/* Cases of rows/misc.def; see check.h. */
C(QuantizeLinear, quant, "T[n,m]; T[]=[0.05]; U[]=[3]", "f32:i8 f32:u8 f16:i8 bf16:u8 f32:i16",
  .sizes = NM, .flags = KC_EXACT | KC_WITH_BIG | KC_WITH_EQUAL | KC_WITH_TINY, .bench = WIDE)
C(QuantizeLinear, quant, "T[n,m]; T[m]~pos; U[m]~int(0,3)", "f32:i8 f16:u8 f32:i4 f32:f8e4m3fn",
  .attrs = "{axis = 1}", .sizes = "n=7,m=33; n=1,m=1; n=2,m=1025; n=31,m=32", .flags = KC_EXACT)
C(QuantizeLinear, quant, "T[n,8]; T[n,2]~pos; U[n,2]~int(0,3)", "f32:i8 f16:u8",
  .attrs = "{axis = 1, block_size = 4}", .sizes = N, .flags = KC_EXACT)
C(DequantizeLinear, quant, "T[n,m]; U[]=[0.05]; T[]=[3]",
  "i8:f32 u8:f32 i8:f16 u8:bf16 i16:f32 f8e4m3fn:f32", .sizes = NM, .flags = KC_EXACT,
  .bench = WIDE)
C(DequantizeLinear, quant, "T[n,m]; U[m]~pos; T[m]~int(0,3)", "i8:f32 u8:f16 i4:f32 u4:f16",
  .attrs = "{axis = 1}", .sizes = "n=7,m=33; n=1,m=1; n=2,m=1025; n=31,m=32", .flags = KC_EXACT,
  .bench = WIDE)
C(DequantizeLinear, quant, "T[n,8]; U[n,2]~pos", "i8:f32 u8:f16 i32:f32",
  .attrs = "{axis = 1, block_size = 4}", .sizes = N, .flags = KC_EXACT)
C(DynamicQuantizeLinear, dynamic_quantize, "f32[n]", "f32", .outs = "yyy",
  .sizes = "n=33; n=1; n=2; n=31; n=32; n=1023; n=1025", .large = LARGE,
  .flags = KC_EXACT | KC_WITH_BIG | KC_WITH_EQUAL | KC_WITH_CANCEL, .bench = FLAT)
#define SPECTRA "n=3,m=33; n=1,m=1; n=2,m=64; n=2,m=127; n=1,m=100"
C(DFT, fourier, "T[n,m,1]; _; i64[]=[1]", "f32 f64 f16", .sizes = SPECTRA,
  .flags = KC_FUSED | KC_WIDE | KC_WITH_EQUAL, .bench = "n=4096,m=1024", .flops = "5*n*m*10")
C(DFT, fourier, "T[n,m,2]; _; i64[]=[1]", "f32 f64", .attrs = "{inverse = 1}", .sizes = SPECTRA,
  .flags = KC_FUSED | KC_WIDE)
C(DFT, fourier, "T[n,m,1]; i64[]=[48]; i64[]=[1]", "f32", .attrs = "{onesided = 1}",
  .sizes = SPECTRA, .flags = KC_FUSED | KC_WIDE)
C(STFT, fourier, "T[n,m,1]; i64[]=[8]; T[16]~unit; i64[]=[16]", "f32 f64 f16",
  .sizes = "n=2,m=64; n=1,m=16; n=3,m=100", .flags = KC_FUSED | KC_WIDE, .bench = "n=64,m=160000")
C(HannWindow, cosine_window, "i64[]~val(n)", "f32 f64 f16", .attrs = "{output_datatype = $N}",
  .sizes = "n=33; n=1; n=2; n=1025", .bench = "n=16384")
C(HammingWindow, cosine_window, "i64[]~val(n)", "f32 f64 f16",
  .attrs = "{output_datatype = $N, periodic = 0}", .sizes = "n=33; n=2; n=1025", .bench = "n=16384")
C(BlackmanWindow, cosine_window, "i64[]~val(n)", "f32 f64", .attrs = "{output_datatype = $N}",
  .sizes = "n=33; n=1; n=2; n=1025", .bench = "n=16384")
C(MelWeightMatrix, mel_weights,
  "i64[]~val(n); i64[]~val(m); i64[]~val(8000); f32[]~val(20); f32[]~val(4000)", "f32 f64",
  .attrs = "{output_datatype = $N}", .sizes = "n=8,m=64; n=1,m=2; n=40,m=512",
  .bench = "n=128,m=1024")
#define DRAWN .flags = KC_EXACT
C(RandomNormal, random, "", "f32 f16 f64",
  .attrs = "{shape = [5,37], seed = 3, dtype = $T, mean = 1, scale = 2}")
C(RandomNormal, random, "", "f32", .attrs = "{shape = [4096,4096]}", .sizes = "n=1",
  .flags = KC_STATIC | KC_BENCH_ONLY, .bench = "n=1")
C(RandomNormalLike, random, "T[n,3]", "f32 f16 f64", .attrs = "{seed = 4}", .sizes = N,
  .bench = "n=4194304")
C(RandomUniform, random, "", "f32 f16 f64",
  .attrs = "{shape = [5,37], seed = 3, dtype = $T, low = -1}")
C(RandomUniform, random, "", "f32", .attrs = "{shape = [4096,4096]}", .sizes = "n=1",
  .flags = KC_STATIC | KC_BENCH_ONLY, .bench = "n=1")
C(RandomUniformLike, random, "T[n,3]", "f32 f16 f64", .sizes = N, .bench = "n=4194304")
C(Bernoulli, random, "T[n,3]~unit", "f32 f16 f64", .attrs = "{seed = 5}", .sizes = N, DRAWN,
  .bench = "n=4194304")
C(Bernoulli, random, "T[n,3]~unit", "f32:i64 f16:bool", .attrs = "{dtype = $U}", .sizes = N, DRAWN)
C(Dropout, random, "T[n,3]; f32[]=[0.3]; bool[]=[1]", "f32 f16 bf16 f64", .attrs = "{seed = 7}",
  .outs = "yy", .sizes = N, .bench = "n=4194304")
C(Multinomial, multinomial, "T[n,5]", "f32 f16 f64", .attrs = "{sample_size = 7, seed = 9}",
  .sizes = N, DRAWN, .bench = "n=65536")
C(TfIdfVectorizer, tfidf, "T[n,8]~int(0,4)", "i64 i32", .sizes = N, .bench = "n=65536",
  .attrs = "{mode = \"TFIDF\", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, "
           "ngram_counts = [0,3], ngram_indexes = [0,1,2,3,4], pool_int64s = [0,1,2,1,2,2,3], "
           "weights = [0.5,1,2,3,4]}")
