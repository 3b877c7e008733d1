/* exec/print.c: device_print against texts that NumPy 2 made of the same values (numpy.array2string with its defaults). */
#include <math.h>

#include "exec_rig.h"

struct print_case {
    int space, dtype, rank;
    int64_t dim[3];
    const char *text;
};

/* Element i of case k. */
static double value_of(int k, int64_t n)
{
    int i = (int)n;
    switch (k) {
    case 0: return (double)i;
    case 1: return (i * 37 % 101 - 50) / 8.0;
    case 2: return ldexp(1, 5 * i - 20);
    case 3: return i == 1 ? NAN : i == 3 ? INFINITY : i == 6 ? -INFINITY : i / 4.0;
    case 4: return i == 1 ? NAN : INFINITY;
    case 5: return 0;
    case 6: return i == 2 ? 1e10 : (double)i;
    case 7: return ldexp(3, 20 * i);
    case 8: return -ldexp(1, -100 - 4 * i);
    case 9: return (i + 1) / 3.0;
    case 10: return (i * 37 % 101 - 50) / 16.0;
    case 11: return (i * 37 % 101 - 50) / 8.0;
    case 12: return (double)i;
    case 13: return i * 13 % 29 - 14;
    case 14: return i / 2.0;
    case 15: return i / 2.0;
    case 16: return (i + 1) / 3.0;
    case 17: return (i - 4) * 1000;
    case 18: return i * 3;
    case 19: return i % 2;
    case 20: return i * 7919 % 10007 - 5000;
    default: return 0;
    }
}

static const struct print_case cases[] = {
    /* (double)i of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 3 },
      "t0 float32 (2, 3)\n"
      "[[0. 1. 2.]\n"
      " [3. 4. 5.]]\n" },
    /* (i * 37 % 101 - 50) / 8.0 of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 3, 4 },
      "t1 float32 (3, 4)\n"
      "[[-6.25  -1.625  3.    -5.   ]\n"
      " [-0.375  4.25  -3.75   0.875]\n"
      " [ 5.5   -2.5    2.125 -5.875]]\n" },
    /* ldexp(1, 5 * i - 20) of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 4 },
      "t2 float32 (2, 4)\n"
      "[[9.5367432e-07 3.0517578e-05 9.7656250e-04 3.1250000e-02]\n"
      " [1.0000000e+00 3.2000000e+01 1.0240000e+03 3.2768000e+04]]\n" },
    /* i == 1 ? NAN : i == 3 ? INFINITY : i == 6 ? -INFINITY : i / 4.0 of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 4 },
      "t3 float32 (2, 4)\n"
      "[[0.    nan 0.5   inf]\n"
      " [1.   1.25 -inf 1.75]]\n" },
    /* i == 1 ? NAN : INFINITY of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 1, 3 },
      "t4 float32 (1, 3)\n"
      "[[inf nan inf]]\n" },
    /* 0 of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 3 },
      "t5 float32 (2, 3)\n"
      "[[0. 0. 0.]\n"
      " [0. 0. 0.]]\n" },
    /* i == 2 ? 1e10 : (double)i of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 3 },
      "t6 float32 (2, 3)\n"
      "[[0.e+00 1.e+00 1.e+10]\n"
      " [3.e+00 4.e+00 5.e+00]]\n" },
    /* ldexp(3, 20 * i) of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 2 },
      "t7 float32 (2, 2)\n"
      "[[3.0000000e+00 3.1457280e+06]\n"
      " [3.2985349e+12 3.4587645e+18]]\n" },
    /* -ldexp(1, -100 - 4 * i) of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 3 },
      "t8 float32 (2, 3)\n"
      "[[-7.8886091e-31 -4.9303807e-32 -3.0814879e-33]\n"
      " [-1.9259299e-34 -1.2037062e-35 -7.5231638e-37]]\n" },
    /* (i + 1) / 3.0 of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 2, 3 },
      "t9 float32 (2, 3)\n"
      "[[0.33333334 0.6666667  1.        ]\n"
      " [1.3333334  1.6666666  2.        ]]\n" },
    /* (i * 37 % 101 - 50) / 16.0 of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 1, 30 },
      "t10 float32 (1, 30)\n"
      "[[-3.125  -0.8125  1.5    -2.5    -0.1875  2.125  -1.875   0.4375  2.75\n"
      "  -1.25    1.0625 -2.9375 -0.625   1.6875 -2.3125  0.      2.3125 -1.6875\n"
      "   0.625   2.9375 -1.0625  1.25   -2.75   -0.4375  1.875  -2.125   0.1875\n"
      "   2.5    -1.5     0.8125]]\n" },
    /* (i * 37 % 101 - 50) / 8.0 of F32 */
    { VTRN_SBUF,
      VTRN_DT_F32,
      2,
      { 40, 30 },
      "t11 float32 (40, 30)\n"
      "[[-6.25  -1.625  3.    ...  5.    -3.     1.625]\n"
      " [ 6.25  -1.75   2.875 ...  4.875 -3.125  1.5  ]\n"
      " [ 6.125 -1.875  2.75  ...  4.75  -3.25   1.375]\n"
      " ...\n"
      " [ 1.75  -6.25  -1.625 ...  0.375  5.    -3.   ]\n"
      " [ 1.625  6.25  -1.75  ...  0.25   4.875 -3.125]\n"
      " [ 1.5    6.125 -1.875 ...  0.125  4.75  -3.25 ]]\n" },
    /* (double)i of F32 */
    { VTRN_HBM,
      VTRN_DT_F32,
      3,
      { 8, 9, 20 },
      "t12 float32 (8, 9, 20)\n"
      "[[[0.000e+00 1.000e+00 2.000e+00 ... 1.700e+01 1.800e+01 1.900e+01]\n"
      "  [2.000e+01 2.100e+01 2.200e+01 ... 3.700e+01 3.800e+01 3.900e+01]\n"
      "  [4.000e+01 4.100e+01 4.200e+01 ... 5.700e+01 5.800e+01 5.900e+01]\n"
      "  ...\n"
      "  [1.200e+02 1.210e+02 1.220e+02 ... 1.370e+02 1.380e+02 1.390e+02]\n"
      "  [1.400e+02 1.410e+02 1.420e+02 ... 1.570e+02 1.580e+02 1.590e+02]\n"
      "  [1.600e+02 1.610e+02 1.620e+02 ... 1.770e+02 1.780e+02 1.790e+02]]\n"
      "\n"
      " [[1.800e+02 1.810e+02 1.820e+02 ... 1.970e+02 1.980e+02 1.990e+02]\n"
      "  [2.000e+02 2.010e+02 2.020e+02 ... 2.170e+02 2.180e+02 2.190e+02]\n"
      "  [2.200e+02 2.210e+02 2.220e+02 ... 2.370e+02 2.380e+02 2.390e+02]\n"
      "  ...\n"
      "  [3.000e+02 3.010e+02 3.020e+02 ... 3.170e+02 3.180e+02 3.190e+02]\n"
      "  [3.200e+02 3.210e+02 3.220e+02 ... 3.370e+02 3.380e+02 3.390e+02]\n"
      "  [3.400e+02 3.410e+02 3.420e+02 ... 3.570e+02 3.580e+02 3.590e+02]]\n"
      "\n"
      " [[3.600e+02 3.610e+02 3.620e+02 ... 3.770e+02 3.780e+02 3.790e+02]\n"
      "  [3.800e+02 3.810e+02 3.820e+02 ... 3.970e+02 3.980e+02 3.990e+02]\n"
      "  [4.000e+02 4.010e+02 4.020e+02 ... 4.170e+02 4.180e+02 4.190e+02]\n"
      "  ...\n"
      "  [4.800e+02 4.810e+02 4.820e+02 ... 4.970e+02 4.980e+02 4.990e+02]\n"
      "  [5.000e+02 5.010e+02 5.020e+02 ... 5.170e+02 5.180e+02 5.190e+02]\n"
      "  [5.200e+02 5.210e+02 5.220e+02 ... 5.370e+02 5.380e+02 5.390e+02]]\n"
      "\n"
      " ...\n"
      "\n"
      " [[9.000e+02 9.010e+02 9.020e+02 ... 9.170e+02 9.180e+02 9.190e+02]\n"
      "  [9.200e+02 9.210e+02 9.220e+02 ... 9.370e+02 9.380e+02 9.390e+02]\n"
      "  [9.400e+02 9.410e+02 9.420e+02 ... 9.570e+02 9.580e+02 9.590e+02]\n"
      "  ...\n"
      "  [1.020e+03 1.021e+03 1.022e+03 ... 1.037e+03 1.038e+03 1.039e+03]\n"
      "  [1.040e+03 1.041e+03 1.042e+03 ... 1.057e+03 1.058e+03 1.059e+03]\n"
      "  [1.060e+03 1.061e+03 1.062e+03 ... 1.077e+03 1.078e+03 1.079e+03]]\n"
      "\n"
      " [[1.080e+03 1.081e+03 1.082e+03 ... 1.097e+03 1.098e+03 1.099e+03]\n"
      "  [1.100e+03 1.101e+03 1.102e+03 ... 1.117e+03 1.118e+03 1.119e+03]\n"
      "  [1.120e+03 1.121e+03 1.122e+03 ... 1.137e+03 1.138e+03 1.139e+03]\n"
      "  ...\n"
      "  [1.200e+03 1.201e+03 1.202e+03 ... 1.217e+03 1.218e+03 1.219e+03]\n"
      "  [1.220e+03 1.221e+03 1.222e+03 ... 1.237e+03 1.238e+03 1.239e+03]\n"
      "  [1.240e+03 1.241e+03 1.242e+03 ... 1.257e+03 1.258e+03 1.259e+03]]\n"
      "\n"
      " [[1.260e+03 1.261e+03 1.262e+03 ... 1.277e+03 1.278e+03 1.279e+03]\n"
      "  [1.280e+03 1.281e+03 1.282e+03 ... 1.297e+03 1.298e+03 1.299e+03]\n"
      "  [1.300e+03 1.301e+03 1.302e+03 ... 1.317e+03 1.318e+03 1.319e+03]\n"
      "  ...\n"
      "  [1.380e+03 1.381e+03 1.382e+03 ... 1.397e+03 1.398e+03 1.399e+03]\n"
      "  [1.400e+03 1.401e+03 1.402e+03 ... 1.417e+03 1.418e+03 1.419e+03]\n"
      "  [1.420e+03 1.421e+03 1.422e+03 ... 1.437e+03 1.438e+03 1.439e+03]]]\n" },
    /* i * 13 % 29 - 14 of I16 */
    { VTRN_HBM,
      VTRN_DT_I16,
      3,
      { 2, 3, 4 },
      "t13 int16 (2, 3, 4)\n"
      "[[[-14  -1  12  -4]\n"
      "  [  9  -7   6 -10]\n"
      "  [  3 -13   0  13]]\n"
      "\n"
      " [[ -3  10  -6   7]\n"
      "  [ -9   4 -12   1]\n"
      "  [ 14  -2  11  -5]]]\n" },
    /* i / 2.0 of F32 */
    { VTRN_HBM,
      VTRN_DT_F32,
      1,
      { 5 },
      "t14 float32 (5,)\n"
      "[0.  0.5 1.  1.5 2. ]\n" },
    /* i / 2.0 of F32 */
    { VTRN_HBM,
      VTRN_DT_F32,
      1,
      { 1500 },
      "t15 float32 (1500,)\n"
      "[0.000e+00 5.000e-01 1.000e+00 ... 7.485e+02 7.490e+02 7.495e+02]\n" },
    /* (i + 1) / 3.0 of F16 */
    { VTRN_SBUF,
      VTRN_DT_F16,
      2,
      { 2, 3 },
      "t16 float16 (2, 3)\n"
      "[[0.3333 0.6665 1.    ]\n"
      " [1.333  1.667  2.    ]]\n" },
    /* (i - 4) * 1000 of I32 */
    { VTRN_SBUF,
      VTRN_DT_I32,
      2,
      { 2, 5 },
      "t17 int32 (2, 5)\n"
      "[[-4000 -3000 -2000 -1000     0]\n"
      " [ 1000  2000  3000  4000  5000]]\n" },
    /* i * 3 of U8 */
    { VTRN_SBUF,
      VTRN_DT_U8,
      2,
      { 2, 40 },
      "t18 uint8 (2, 40)\n"
      "[[  0   3   6   9  12  15  18  21  24  27  30  33  36  39  42  45  48  51\n"
      "   54  57  60  63  66  69  72  75  78  81  84  87  90  93  96  99 102 105\n"
      "  108 111 114 117]\n"
      " [120 123 126 129 132 135 138 141 144 147 150 153 156 159 162 165 168 171\n"
      "  174 177 180 183 186 189 192 195 198 201 204 207 210 213 216 219 222 225\n"
      "  228 231 234 237]]\n" },
    /* i % 2 of BOOL */
    { VTRN_SBUF,
      VTRN_DT_BOOL,
      2,
      { 2, 3 },
      "t19 bool_ (2, 3)\n"
      "[[False  True False]\n"
      " [ True False  True]]\n" },
    /* i * 7919 % 10007 - 5000 of I32 */
    { VTRN_SBUF,
      VTRN_DT_I32,
      2,
      { 128, 9 },
      "t20 int32 (128, 9)\n"
      "[[-5000  2919   831 ...  2486   398 -1690]\n"
      " [-3778  4141  2053 ...  3708  1620  -468]\n"
      " [-2556 -4644  3275 ...  4930  2842   754]\n"
      " ...\n"
      " [-2355 -4443  3476 ... -4876  3043   955]\n"
      " [-1133 -3221  4698 ... -3654  4265  2177]\n"
      " [   89 -1999 -4087 ... -2432 -4520  3399]]\n" },
};

static uint32_t append_print(struct rig *rig, const char *prefix, struct vtrn_ap ap)
{
    struct vtrn_inst inst;
    uint32_t string;
    assert_int_equal(vtrn_prog_string(rig->prog, prefix, strlen(prefix), &string), VTRN_OK);
    vtrn_inst_init(&inst, VTRN_OP_device_print);
    rig_set_int(RIG_ARG(&inst, device_print, print_prefix), string);
    rig_set_ap(RIG_ARG(&inst, device_print, tensor), ap);
    rig_append(rig, 0, &inst);
    return string;
}

static void test_like_numpy(void **state)
{
    (void)state;
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
        const struct print_case *c = &cases[k];
        struct rig *rig = rig_create("trn2", 1, 1);
        uint32_t tensor = rig_tensor(rig, 0, c->space, c->dtype, c->rank, c->dim);
        int64_t elems = rig_elems(rig, tensor), bytes = vtrn_dtypes[c->dtype].size_bytes;
        uint8_t *image = malloc((size_t)(elems * bytes));
        char prefix[16];
        for (int64_t i = 0; i < elems; i++) vtrn_from_f32((enum vtrn_dtype)c->dtype, (float)value_of(k, i), image + i * bytes);
        rig_write(rig, 0, tensor, image);
        snprintf(prefix, sizeof prefix, "t%d", k);
        append_print(rig, prefix, rig_ap(rig, tensor));
        rig_run_ok(rig, 0);
        assert_int_equal(rig->prints, 1);
        assert_string_equal(rig->printed, c->text);
        free(image);
        rig_destroy(rig);
    }
}

/* What NumPy does not have: 16-bit and 8-bit floats by their own shortest digits, packed elements, views. */
static void test_own_dtypes(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn3", 1, 1);
    uint32_t bf16 = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, 2, 4), fp8 = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F8E4M3, 1, 3);
    uint32_t packed = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F8E5M2X4, 1, 2);
    uint16_t words[8];
    uint8_t bytes[3];
    uint32_t quads[2] = { 0x12345678, 0xff };
    for (int i = 0; i < 8; i++) vtrn_from_f32(VTRN_DT_BF16, (float)(i + 1) / 3, words + i);
    for (int i = 0; i < 3; i++) vtrn_from_f32(VTRN_DT_F8E4M3, (float)(i + 1) / 3, bytes + i);
    rig_write(rig, 0, bf16, words);
    rig_write(rig, 0, fp8, bytes);
    rig_write(rig, 0, packed, quads);
    append_print(rig, "", rig_ap(rig, bf16));
    append_print(rig, "cut", rig_slice(rig, bf16, 1, 1, 1, 2));
    append_print(rig, "", rig_ap(rig, fp8));
    append_print(rig, "", rig_ap(rig, packed));
    rig_run_ok(rig, 0);
    assert_int_equal(rig->prints, 4);
    assert_string_equal(rig->printed, "bfloat16 (2, 4)\n[[0.334 0.668 1.    1.336]\n [1.664 2.    2.33  2.67 ]]\n"
                                      "cut bfloat16 (1, 2)\n[[2.   2.33]]\n"
                                      "float8_e4m3 (1, 3)\n[[0.34 0.7  1.  ]]\n"
                                      "float8_e5m2_x4 (1, 2)\n[[0x12345678 0x000000ff]]\n");
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_like_numpy), cmocka_unit_test(test_own_dtypes) };
    return cmocka_run_group_tests_name("exec_print", tests, NULL, NULL);
}
