/* The end of the chains of every vector level: one add to what was there, NaNs made canonical. Written in the words of the
 * including file, see mm_fma.inc.c. */
MM_INLINE void finish_vector(vf chain, bool acc, float *d, int lanes)
{
    if (lanes >= VL) {
        v_store(d, v_canonical(acc ? v_add(v_load(d), chain) : chain));
    } else if (lanes > 0) {
        v_store_part(d, v_canonical(acc ? v_add(v_load_part(d, lanes), chain) : chain), lanes);
    }
}
