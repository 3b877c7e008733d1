/* Inside kern/ only: the bits of floats, and the hooks by which files of ref/, x86/ and arm/ put their functions into a
 * table. */
#ifndef VTRN_KERN_INT_H
#define VTRN_KERN_INT_H
#include "kern/kern.h"

#define KERN_INLINE static inline __attribute__((always_inline))
#define KERN_NAN_BITS UINT32_C(0x7fc00000)

KERN_INLINE uint32_t kern_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
KERN_INLINE float kern_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
KERN_INLINE float kern_canonical(float x) { return x != x ? kern_float(KERN_NAN_BITS) : x; }

/* One hook for each group of slots and level; each sets what it has. */
#define KERN_EACH_GROUP(X, level) X(level, convert) X(level, alu) X(level, bits) X(level, act) X(level, rows)
#define KERN_HOOK(level, group) void vtrn_kern_##level##_##group(struct vtrn_kern *kern);
KERN_EACH_GROUP(KERN_HOOK, ref)
KERN_EACH_GROUP(KERN_HOOK, avx2)
KERN_EACH_GROUP(KERN_HOOK, avx512)
KERN_EACH_GROUP(KERN_HOOK, neon)
#undef KERN_HOOK

/* Matrix kernels and transposes. `level` is the one being filled; called once for each level from AVX2 up. */
void vtrn_kern_ref_mm(struct vtrn_kern *kern);
void vtrn_kern_x86_mm(struct vtrn_kern *kern, enum vtrn_cpu_level level);
void vtrn_kern_arm_mm(struct vtrn_kern *kern);
#endif
