/* Cases of rows/matmul.def; see check.h. */
#define MNK                                                                                        \
    "n=33,m=31,k=65; n=1,m=1,k=1; n=2,m=64,k=32; n=1,m=33,k=1023; n=130,m=129,k=16; "              \
    "n=31,m=1,k=40; n=128,m=128,k=0; n=0,m=4,k=4; n=64,m=64,k=64"
#define BIGMM   "n=257,m=513,k=1025"
#define PRODUCT (KC_WIDE | KC_WITH_BIG | KC_WITH_CANCEL | KC_WITH_EQUAL | KC_WITH_TINY)
#define GEMMS   "n=4096,m=4096,k=4096; n=1,m=4096,k=4096; n=128,m=4096,k=1024"
#define FLOPS   "2*n*m*k"
#define SIMT    "f32 f64 f16 i32"
#define BOTH(name, operands, ...)                                                                  \
    C(name, gemm_mma, operands, H, .flags = PRODUCT, __VA_ARGS__)                                  \
    C(name, gemm_simt, operands, "f32 f64 f16 bf16", .flags = PRODUCT, __VA_ARGS__)
BOTH(MatMul, "T[n,k]; T[k,m]", .sizes = MNK, .large = BIGMM, .bench = GEMMS, .flops = FLOPS)
BOTH(MatMul, "T[3,n,k]; T[3,k,m]", .sizes = MNK, .bench = "n=512,m=512,k=64", .flops = "6*n*m*k")
BOTH(MatMul, "T[2,1,n,k]; T[3,k,m]", .sizes = "n=5,m=33,k=17; n=1,m=1,k=3; n=32,m=64,k=32")
BOTH(MatMul, "T[k]; T[k,m]", .sizes = "m=33,k=17; m=1,k=3; m=64,k=1025; m=8,k=0")
BOTH(MatMul, "T[n,k]; T[k]", .sizes = "n=33,k=17; n=1,k=3; n=64,k=1025")
C(MatMul, gemm_simt, "T[n,k]; T[k,m]", "i32 i64 u32", .sizes = MNK)
BOTH(Gemm, "T[k,n]; T[k,m]; T[m]", .attrs = "{transA = 1, alpha = 0.5, beta = 2}", .sizes = MNK,
     .bench = GEMMS, .flops = FLOPS)
BOTH(Gemm, "T[n,k]; T[m,k]; T[n,1]", .attrs = "{transB = 1}", .sizes = MNK, .large = BIGMM,
     .bench = GEMMS, .flops = FLOPS)
BOTH(Gemm, "T[n,k]; T[k,m]", .attrs = "{alpha = 2}", .sizes = MNK)
BOTH(Linear, "T[n,2,k]; T[k,m]; T[m]", .sizes = MNK, .bench = "n=2048,m=4096,k=4096",
     .flops = "4*n*m*k")
BOTH(Linear, "T[n,k]; T[m,k]; T[m]", .attrs = "{transB = 1, alpha = 0.25}", .sizes = MNK,
     .large = BIGMM, .bench = GEMMS, .flops = FLOPS)
BOTH(FusedMatMul, "T[3,n,k]; T[3,m,k]", .attrs = "{transB = 1, alpha = 0.125}", .sizes = MNK,
     .bench = "n=1024,m=1024,k=64", .flops = "6*n*m*k")
BOTH(FusedMatMul, "T[k,n]; T[k,m]", .attrs = "{transA = 1}", .sizes = MNK)
BOTH(FusedGemm, "T[n,k]; T[k,m]; T[m]", .attrs = "{activation = \"Relu\"}", .sizes = MNK,
     .bench = GEMMS, .flops = FLOPS)
BOTH(FusedGemm, "T[n,k]; T[m,k]; T[m]",
     .attrs = "{transB = 1, activation = \"LeakyRelu\", activation_alpha = 0.1}",
     .sizes = "n=33,m=31,k=65; n=1,m=33,k=7")
#define QUANT(name, operands, ...)                                                                 \
    C(name, gemm_quant_mma, operands, "u8:i8 i8:i8 u8:u8 i8:u8", __VA_ARGS__)                      \
    C(name, gemm_quant, operands, "u8:i8 i8:i8 u8:u8 i8:u8", __VA_ARGS__)
QUANT(MatMulInteger, "T[n,k]; U[k,m]; T[]~int(0,9); U[]~int(0,9)", .sizes = MNK, .large = BIGMM,
      .flags = KC_WITH_BIG, .bench = GEMMS, .flops = FLOPS)
QUANT(MatMulInteger, "T[2,n,k]; U[k,m]", .sizes = MNK)
QUANT(MatMulInteger, "T[n,k]; U[k,m]; T[n]~int(0,9); U[m]~int(0,9)", .sizes = MNK)
QUANT(QLinearMatMul,
      "T[n,k]; f32[]=[0.05]; T[]=[3]; U[k,m]; f32[]=[0.03]; U[]=[1]; f32[]=[0.4]; T[]=[4]",
      .sizes = MNK, .flags = KC_WITH_BIG, .bench = GEMMS, .flops = FLOPS)
QUANT(QLinearMatMul,
      "T[2,n,k]; f32[]~pos; T[]=[3]; U[2,k,m]; f32[]=[0.03]; U[]=[1]; f32[]~pos; T[]=[4]",
      .sizes = MNK)
BOTH(Einsum, "T[3,n,k]; T[3,k,m]", .attrs = "{equation = \"bij,bjk->bik\"}", .sizes = MNK,
     .bench = "n=1024,m=1024,k=64", .flops = "6*n*m*k")
BOTH(Einsum, "T[n,2,k]; T[m,2,k]", .attrs = "{equation = \"ihd,jhd->hij\"}", .sizes = MNK)
C(Einsum, einsum, "T[n,k]; T[k,m]; T[m,3]", "f32 f16 f64", .attrs = "{equation = \"ij,jk,kl->il\"}",
  .sizes = "n=5,m=7,k=9; n=1,m=1,k=1; n=33,m=31,k=17", .flags = KC_WIDE | KC_FUSED)
C(Einsum, einsum, "T[n,n]", "f32 f16 i32", .attrs = "{equation = \"ii->i\"}",
  .sizes = "n=5; n=1; n=33", .flags = KC_WITH_BIG)
C(Einsum, einsum, "T[n,m]; T[n,m]", "f32 f16 bf16", .attrs = "{equation = \"ij,ij->\"}",
  .sizes = "n=5,m=7; n=33,m=31", .flags = KC_WIDE, .bench = "n=1024,m=1024", .flops = "2*n*m")
