/* Cases of rows/attention.def; see check.h. */
C(RotaryEmbedding, rotary, "T[n,4,m,8]; T[50,4]; T[50,4]; i64[n,m]~int(0,49)", F,
  .sizes = "n=2,m=5; n=1,m=1; n=3,m=33; n=0,m=4", .flags = KC_FUSED | KC_WITH_BIG,
  .bench = "n=32,m=4096")
C(RotaryEmbedding, rotary, "T[n,m,32]; T[n,m,3]; T[n,m,3]", "f32 f16",
  .attrs = "{num_heads = 4, rotary_embedding_dim = 6, interleaved = 1}",
  .sizes = "n=2,m=5; n=1,m=1; n=3,m=33", .flags = KC_FUSED)
C(MsRotaryEmbedding, rotary, "T[n,m,32]; i64[n,m]~int(0,49); T[50,4]; T[50,4]", "f32 f16 bf16",
  .attrs = "{num_heads = 4}", .sizes = "n=2,m=5; n=1,m=1; n=3,m=33", .flags = KC_FUSED,
  .bench = "n=32,m=4096")
C(MsRotaryEmbedding, rotary, "T[n,4,m,8]; i64[1]~int(0,9); T[50,4]; T[50,4]", "f32",
  .attrs = "{interleaved = 1}", .sizes = "n=2,m=5; n=3,m=33", .flags = KC_FUSED)
#define STATES "n=2,m=5; n=1,m=1; n=3,m=33; n=1,m=70"
C(LinearAttention, linear_attention, "T[n,m,16]~small; T[n,m,16]~small; T[n,m,16]", "f32 f16 bf16",
  .attrs = "{q_num_heads = 2, kv_num_heads = 2, update_rule = \"linear\"}", .outs = "yy",
  .sizes = STATES, .flags = KC_FUSED | KC_WIDE, .bench = "n=8,m=1024")
C(LinearAttention, linear_attention,
  "T[n,m,16]~small; T[n,m,16]~small; T[n,m,16]; T[n,2,8,8]~small; T[n,m,2]~in(-1,0); T[n,m,2]~unit",
  "f32 f16", .attrs = "{q_num_heads = 2, kv_num_heads = 2}", .outs = "yy", .sizes = STATES,
  .flags = KC_FUSED | KC_WIDE)
C(CausalConvWithState, causal_conv, "T[n,6,m]; T[6,1,4]; T[6]; T[n,6,3]", "f32 f16 bf16",
  .attrs = "{activation = \"silu\"}", .outs = "yy", .sizes = STATES, .flags = KC_FUSED | KC_WIDE,
  .bench = "n=64,m=16384")
C(CausalConvWithState, causal_conv, "T[n,6,m]; T[6,1,4]", "f32 f16", .outs = "yy", .sizes = STATES,
  .flags = KC_FUSED | KC_WIDE)
#define CELLS "n=2,m=5; n=1,m=1; n=33,m=3; n=3,m=17"
C(RNN, recurrent, "T[m,n,5]; T[1,4,5]~small; T[1,4,4]~small; T[1,8]", F,
  .attrs = "{hidden_size = 4}", .outs = "yy", .sizes = CELLS, .flags = KC_FUSED | KC_WIDE,
  .bench = "n=64,m=64")
C(GRU, recurrent, "T[m,n,5]; T[1,12,5]~small; T[1,12,4]~small; T[1,24]", F,
  .attrs = "{hidden_size = 4}", .outs = "yy", .sizes = CELLS, .flags = KC_FUSED | KC_WIDE,
  .bench = "n=64,m=64")
C(GRU, recurrent, "T[m,n,5]; T[2,12,5]~small; T[2,12,4]~small", "f32 f16",
  .attrs = "{hidden_size = 4, direction = \"bidirectional\", linear_before_reset = 1}",
  .outs = "yy", .sizes = CELLS, .flags = KC_FUSED | KC_WIDE)
C(LSTM, recurrent,
  "T[m,n,5]; T[2,16,5]~small; T[2,16,4]~small; T[2,32]; _; T[2,n,4]; T[2,n,4]; T[2,12]", F,
  .attrs = "{hidden_size = 4, direction = \"bidirectional\"}", .outs = "yyy", .sizes = CELLS,
  .flags = KC_FUSED | KC_WIDE)
C(LSTM, recurrent, "T[m,n,64]; T[1,512,64]~small; T[1,512,128]~small; T[1,1024]", "f32 f16",
  .attrs = "{hidden_size = 128}", .outs = "yyy", .sizes = "n=2,m=3", .flags = KC_FUSED | KC_WIDE,
  .bench = "n=64,m=64")
#define SEQ "n=2,q=5,k=7; n=1,q=1,k=1; n=1,q=1,k=65; n=2,q=33,k=31; n=1,q=64,k=64; n=1,q=17,k=130"
#define ATT "n=8,q=1024,k=1024; n=8,q=1,k=4096"
C(Attention, attention, "T[n,4,q,16]; T[n,2,k,16]; T[n,2,k,16]", F, .sizes = SEQ,
  .flags = KC_FUSED | KC_WIDE | KC_WITH_EQUAL | KC_WITH_TINY)
C(Attention, attention, "T[n,4,q,64]; T[n,4,k,64]; T[n,4,k,64]", "f32 f16 bf16",
  .attrs = "{is_causal = 1}", .sizes = SEQ, .flags = KC_FUSED | KC_WIDE, .bench = ATT,
  .flops = "4*4*64*n*q*k")
C(Attention, attention, "T[n,4,q,128]; T[n,4,k,128]; T[n,4,k,128]", "f16", .sizes = "n=1,q=33,k=65",
  .flags = KC_FUSED | KC_WIDE, .bench = ATT, .flops = "4*4*128*n*q*k")
C(Attention, attention, "T[n,4,q,16]; T[n,4,k,16]; T[n,4,k,16]; bool[q,k]", "f32 f16", .sizes = SEQ,
  .flags = KC_FUSED | KC_WIDE)
C(Attention, attention, "T[n,q,32]; T[n,k,32]; T[n,k,32]; T[n,1,q,k]", "f32 f16",
  .attrs = "{q_num_heads = 4, kv_num_heads = 4, softcap = 3, qk_matmul_output_mode = 3}",
  .outs = "y__y", .sizes = SEQ, .flags = KC_FUSED | KC_WIDE)
C(Attention, attention, "T[n,4,q,8]; T[n,4,k,8]; T[n,4,k,8]; _; T[n,4,3,8]; T[n,4,3,8]", "f32 f16",
  .attrs = "{is_causal = 1}", .outs = "yyy", .sizes = SEQ, .flags = KC_FUSED | KC_WIDE)
C(MsAttention, attention, "T[n,m,32]; T[32,96]~small; T[96]", "f32 f16", .attrs = "{num_heads = 4}",
  .sizes = "n=2,m=5; n=1,m=1; n=2,m=33", .flags = KC_FUSED | KC_WIDE, .bench = "n=32,m=512",
  .flops = "n*m*(2*32*96+4*32*m)")
C(MsAttention, attention, "T[n,m,32]; T[32,96]~small; T[96]; i32[n]~int(1,5)", "f32",
  .attrs = "{num_heads = 4, unidirectional = 1}", .sizes = "n=2,m=5; n=2,m=33",
  .flags = KC_FUSED | KC_WIDE)
C(MsMultiHeadAttention, attention, "T[n,q,32]; T[n,k,32]; T[n,k,32]", "f32 f16",
  .attrs = "{num_heads = 4}", .sizes = SEQ, .flags = KC_FUSED | KC_WIDE, .bench = ATT,
  .flops = "4*32*n*q*k")
C(MsMultiHeadAttention, attention,
  "T[n,q,32]; T[n,k,32]; T[n,k,32]; T[96]; i32[n,k]~int(0,1); T[n,4,q,k]", "f32 f16",
  .attrs = "{num_heads = 4}", .sizes = SEQ, .flags = KC_FUSED | KC_WIDE)
C(MsGroupQueryAttention, attention,
  "T[2,5,32]; T[2,5,16]; T[2,5,16]; T[2,2,8,8]; T[2,2,8,8]; i32[2]=[8,12]; i32[]=[13]", "f32 f16",
  .attrs = "{num_heads = 4, kv_num_heads = 2}", .outs = "yyy", .flags = KC_FUSED | KC_WIDE)
C(MsGroupQueryAttention, attention,
  "T[2,1,32]; T[2,1,16]; T[2,1,16]; T[2,2,40,8]; T[2,2,40,8]; i32[2]=[12,40]; i32[]=[41]; T[64,4]; "
  "T[64,4]",
  "f32 f16", .attrs = "{num_heads = 4, kv_num_heads = 2, do_rotary = 1}", .outs = "yyy",
  .flags = KC_FUSED | KC_WIDE)
C(MsGroupQueryAttention, attention,
  "T[n,m,512]; T[n,m,128]; T[n,m,128]; _; _; i32[1]=[1023]; i32[]=[1024]", "f16",
  .attrs = "{num_heads = 8, kv_num_heads = 2}", .outs = "yyy", .sizes = "n=1,m=1024",
  .flags = KC_FUSED | KC_WIDE | KC_STATIC, .bench = "n=1,m=1024", .flops = "4*512*n*m*m")
