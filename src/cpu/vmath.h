/* Elementary functions on float that compilers can vectorise: see vmath_tmpl.h, whose scalar
 * instance this is (zc_vm_exp), and simd.h for the vector ones. */
#ifndef ZC_CPU_VMATH_H
#define ZC_CPU_VMATH_H

#include <stdint.h>
#include <string.h>

#define VM_F         float
#define VM_I         int32_t
#define VM_MASK(c)   (-(int32_t)(c))
#define VM_MAX(a, b) ((a) > (b) ? (a) : (b))
#define VM_MIN(a, b) ((a) < (b) ? (a) : (b))
#define VM_FN(n)     zc_vm_##n
#define VM_INLINE    static inline
#include "cpu/vmath_tmpl.h"
#undef VM_F
#undef VM_I
#undef VM_MASK
#undef VM_MAX
#undef VM_MIN
#undef VM_FN
#undef VM_INLINE

#endif
