/* The end of the chains of every vector level: one add to what was there, NaNs made canonical. Written in the words of the
 * including file, see mm_fma.inc.c. */

/* Asks for the destination of a tile, to be there when its chains end. */
MM_INLINE void prefetch_tile(const int mr, const int nv, float *d, ptrdiff_t d_pitch)
{
    const int lines = (nv * VL * 4 + 63) / 64;
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < lines; j++) __builtin_prefetch(mm_row(d, d_pitch, i) + 16 * j);
}
/* mr x nv vectors of chains to rows of the destination, of which `n` columns are there (all vectors have some).
 * A tile is looked through for NaNs by one sum: a NaN makes it NaN. So does a pair of infinities, which only costs the
 * second look. */
MM_INLINE void finish_tile(const int mr, const int nv, vf c[][MM_TILE_VECTORS], bool acc, float *d, ptrdiff_t d_pitch, int n)
{
    const int last = nv - 1;
    const bool whole = n == nv * VL;
    vf sum[2] = { v_zero(), v_zero() };
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
        const float *row = mm_row(d, d_pitch, i);
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) {
            if (acc) c[i][j] = v_add(j < last || whole ? v_load(row + j * VL) : v_load_part(row + j * VL, n - j * VL), c[i][j]);
            sum[j & 1] = v_add(sum[j & 1], c[i][j]);
        }
    }
    if (VTRN_UNLIKELY(v_any_nan(v_add(sum[0], sum[1])))) {
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
            for (int j = 0; j < nv; j++) c[i][j] = v_canonical(c[i][j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
        float *row = mm_row(d, d_pitch, i);
#pragma GCC unroll 16
        for (int j = 0; j < last; j++) v_store(row + j * VL, c[i][j]);
        if (VTRN_LIKELY(whole)) v_store(row + last * VL, c[i][last]);
        else v_store_part(row + last * VL, c[i][last], n - last * VL);
    }
}
