/* Written by tools/gen_act_tables.py; do not edit. Piecewise polynomials in fp32, for every level. */
#include "kern/act_tables.h"

/* sigmoid(-a), relative error of the polynomials 2^-24.4 */
const struct act_table vtrn_act_table_sigmoid = {
    .width = 0x1.800000p-1f, .inverse = 0x1.555556p+0f, .limit = 0x1.734000p+3f,
    .degree = 6,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0x1.000000p-1f, 0x1.488562p-2f, 0x1.759b84p-3f, 0x1.868d2ap-4f, 0x1.848344p-5f, 0x1.787614p-6f,
            0x1.680528p-7f, 0x1.561b2ep-8f, 0x1.441778p-9f, 0x1.329482p-10f, 0x1.21d0b2p-11f, 0x1.11e0bep-12f,
            0x1.02c6f6p-13f, 0x1.e8fb8ap-15f, 0x1.cdf8e4p-16f, 0x1.b47262p-17f},
        { /* t^1 */
            -0x1.000000p-2f, -0x1.be3fbep-3f, -0x1.3173b6p-3f, -0x1.615002p-4f, -0x1.721650p-5f, -0x1.6fcfa4p-6f,
            -0x1.64108ap-7f, -0x1.545202p-8f, -0x1.434a52p-9f, -0x1.3238b8p-10f, -0x1.21a7b0p-11f, -0x1.11ce70p-12f,
            -0x1.02becap-13f, -0x1.e8f440p-15f, -0x1.cdf5a6p-16f, -0x1.b470f0p-17f},
        { /* t^2 */
            0x1.b7d138p-24f, 0x1.3fd3bcp-5f, 0x1.840342p-5f, 0x1.1def58p-5f, 0x1.4efbccp-6f, 0x1.5ee836p-7f,
            0x1.5c3d6cp-8f, 0x1.50c418p-9f, 0x1.41b0b4p-10f, 0x1.318116p-11f, 0x1.215570p-12f, 0x1.11a9d6p-13f,
            0x1.02ae30p-14f, 0x1.e8e5b2p-16f, 0x1.cdef54p-17f, 0x1.b46e06p-18f},
        { /* t^3 */
            0x1.5549ecp-6f, 0x1.6dcda8p-7f, -0x1.564984p-9f, -0x1.c68fb8p-8f, -0x1.67b6aep-8f, -0x1.a85f48p-9f,
            -0x1.bbcd94p-10f, -0x1.b79dc0p-11f, -0x1.a8ab40p-12f, -0x1.956d72p-13f, -0x1.80eab6p-14f, -0x1.6c7e3ap-15f,
            -0x1.58baecp-16f, -0x1.45d936p-17f, -0x1.33e9f2p-18f, -0x1.22ee7ep-19f},
        { /* t^4 */
            0x1.b74208p-16f, -0x1.579c3ep-8f, -0x1.9821aep-9f, -0x1.a471f4p-14f, 0x1.9914eep-11f, 0x1.56219ap-11f,
            0x1.93e5cep-12f, 0x1.a54efcp-13f, 0x1.a0810ap-14f, 0x1.91dad6p-15f, 0x1.7f6f78p-16f, 0x1.6bb88ep-17f,
            0x1.5899fcp-18f, 0x1.45b0acp-19f, 0x1.33c5cap-20f, 0x1.22e69ep-21f},
        { /* t^5 */
            -0x1.2077dcp-9f, -0x1.3f66fcp-12f, 0x1.008dc6p-10f, 0x1.07297ep-11f, 0x1.7d8edap-15f, -0x1.2a3098p-14f,
            -0x1.04e148p-14f, -0x1.34abc6p-15f, -0x1.40f7c0p-16f, -0x1.3cd4f4p-17f, -0x1.31bcb2p-18f, -0x1.23abb6p-19f,
            -0x1.14ad74p-20f, -0x1.05e152p-21f, -0x1.ef91e0p-23f, -0x1.d4246ep-24f},
        { /* t^6 */
            0x1.07bcc8p-12f, 0x1.0409b6p-11f, -0x1.1157fap-19f, -0x1.3bdeb4p-13f, -0x1.d65230p-15f, -0x1.e803bep-18f,
            0x1.616fe6p-18f, 0x1.2e477ep-18f, 0x1.655bd4p-19f, 0x1.797096p-20f, 0x1.752832p-21f, 0x1.82b1a6p-22f,
            0x1.556d82p-23f, 0x1.5c91f6p-24f, 0x1.52985ap-25f, 0x1.38b072p-26f},
    },
};

/* a * sigmoid(-a), relative error of the polynomials 2^-23.5 */
const struct act_table vtrn_act_table_silu = {
    .width = 0x1.000000p-1f, .inverse = 0x1.000000p+1f, .limit = 0x1.ef0000p+2f,
    .degree = 5,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0, 0x1.829a04p-3f, 0x1.136562p-2f, 0x1.1834a4p-2f, 0x1.e84154p-3f, 0x1.8464d6p-3f,
            0x1.236272p-3f, 0x1.a4385ap-4f, 0x1.26afa2p-4f, 0x1.9505ccp-5f, 0x1.1223a0p-5f, 0x1.6ec4acp-6f,
            0x1.e62332p-7f, 0x1.3fbd64p-7f, 0x1.a1f252p-8f, 0x1.0fb3a6p-8f},
        { /* t^1 */
            0x1.000000p-1f, 0x1.0a47a2p-2f, 0x1.2842f8p-4f, -0x1.52481ep-5f, -0x1.73da30p-4f, -0x1.9725a0p-4f,
            -0x1.68dfdap-4f, -0x1.1fd6f4p-4f, -0x1.af6db6p-5f, -0x1.369152p-5f, -0x1.b2f3fep-6f, -0x1.2a9720p-6f,
            -0x1.93e99cp-7f, -0x1.0e11aep-7f, -0x1.65dbf0p-8f, -0x1.d6a63ap-9f},
        { /* t^2 */
            -0x1.ffffb4p-3f, -0x1.c3d050p-3f, -0x1.35a0a8p-3f, -0x1.3fe800p-4f, -0x1.9a21e6p-6f, 0x1.15459cp-8f,
            0x1.08c96ap-6f, 0x1.2dcfe6p-6f, 0x1.0c9166p-6f, 0x1.ab7b20p-7f, 0x1.3f7abep-7f, 0x1.caf338p-8f,
            0x1.40e4cap-8f, 0x1.b822c4p-9f, 0x1.297fdep-9f, 0x1.8dacf6p-10f},
        { /* t^3 */
            -0x1.7b5ba4p-16f, 0x1.2d7d78p-5f, 0x1.a460e8p-5f, 0x1.63e844p-5f, 0x1.bae104p-6f, 0x1.a3c8dap-7f,
            0x1.04d9e4p-8f, -0x1.8596aep-12f, -0x1.07e61ep-9f, -0x1.2e1274p-9f, -0x1.0b57bap-9f, -0x1.a7619cp-10f,
            -0x1.3b530cp-10f, -0x1.c3f704p-11f, -0x1.3b8a78p-11f, -0x1.b06732p-12f},
        { /* t^4 */
            0x1.59cac4p-6f, 0x1.c3d6b4p-7f, 0x1.b0bf96p-11f, -0x1.d679a6p-8f, -0x1.0b670ap-7f, -0x1.7afbfcp-8f,
            -0x1.9eb06ep-9f, -0x1.680550p-10f, -0x1.a54e74p-12f, 0x1.2b6778p-15f, 0x1.909088p-13f, 0x1.c6a1e6p-13f,
            0x1.8e87a8p-13f, 0x1.3a3cacp-13f, 0x1.d32a0ap-14f, 0x1.4dd134p-14f},
        { /* t^5 */
            -0x1.4fa082p-10f, -0x1.3c84d6p-8f, -0x1.33865ep-8f, -0x1.aa9ca4p-10f, 0x1.278386p-11f, 0x1.28ef4ap-10f,
            0x1.d9f65cp-11f, 0x1.178182p-11f, 0x1.0f69b6p-12f, 0x1.ba19c0p-14f, 0x1.f86218p-16f, -0x1.2e2608p-18f,
            -0x1.f07572p-17f, -0x1.0ce26cp-16f, -0x1.dbd68ap-17f, -0x1.758236p-17f},
    },
};

/* a * erfc(a / sqrt 2) / 2, relative error of the polynomials 2^-24.1 */
const struct act_table vtrn_act_table_gelu = {
    .width = 0x1.000000p-2f, .inverse = 0x1.000000p+2f, .limit = 0x1.ea0000p+1f,
    .degree = 5,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0, 0x1.9aecbap-4f, 0x1.3bf144p-3f, 0x1.5c1980p-3f, 0x1.44ed0cp-3f, 0x1.0e76a2p-3f,
            0x1.9a76a4p-4f, 0x1.1f24e0p-4f, 0x1.74bcf8p-5f, 0x1.c2a498p-6f, 0x1.fcb21ep-7f, 0x1.0c832ep-7f,
            0x1.096698p-8f, 0x1.eb9b5cp-10f, 0x1.aae050p-11f, 0x1.5babc2p-12f},
        { /* t^1 */
            0x1.000000p-1f, 0x1.37f00ep-2f, 0x1.0f5eb8p-3f, 0x1.95f212p-11f, -0x1.55429ap-4f, -0x1.f66bfap-4f,
            -0x1.050e90p-3f, -0x1.c65a80p-4f, -0x1.5d1c06p-4f, -0x1.e4e1e4p-5f, -0x1.341c2cp-5f, -0x1.68e630p-6f,
            -0x1.876f60p-7f, -0x1.8a5aeap-8f, -0x1.71da8ep-9f, -0x1.43700cp-10f},
        { /* t^2 */
            -0x1.988448p-2f, -0x1.7f92bep-2f, -0x1.3b735ap-2f, -0x1.bb462ap-3f, -0x1.ef8fa6p-4f, -0x1.474df0p-5f,
            0x1.093eeep-6f, 0x1.77794ep-5f, 0x1.ba4b88p-5f, 0x1.8e2552p-5f, 0x1.3122acp-5f, 0x1.9e6102p-6f,
            0x1.fc4854p-7f, 0x1.1ca6eep-7f, 0x1.251bf8p-8f, 0x1.16bc3cp-9f},
        { /* t^3 */
            -0x1.c6c31ep-17f, 0x1.03d0f8p-4f, 0x1.c2a304p-4f, 0x1.08ffe2p-3f, 0x1.ef8ddcp-4f, 0x1.7be590p-4f,
            0x1.d02cb8p-5f, 0x1.828726p-6f, 0x1.34ec4ep-21f, -0x1.9e6392p-7f, -0x1.0d38d2p-6f, -0x1.e684a0p-7f,
            -0x1.6b09e2p-7f, -0x1.d8adf2p-8f, -0x1.133e1cp-8f, -0x1.22a1a8p-9f},
        { /* t^4 */
            0x1.11b008p-4f, 0x1.d4f7e2p-5f, 0x1.1579b2p-5f, 0x1.3a0f96p-8f, -0x1.47acc8p-6f, -0x1.17749cp-5f,
            -0x1.26cabcp-5f, -0x1.d995dcp-6f, -0x1.27169ep-6f, -0x1.fad072p-8f, -0x1.219b7ap-11f, 0x1.954138p-9f,
            0x1.09176ap-8f, 0x1.cc8ebep-9f, 0x1.45bd64p-9f, 0x1.8e7b82p-10f},
        { /* t^5 */
            -0x1.9461b0p-9f, -0x1.bf0b42p-7f, -0x1.6dc72ep-6f, -0x1.74b078p-6f, -0x1.079296p-6f, -0x1.8c4ac4p-8f,
            0x1.6e90cep-9f, 0x1.029436p-7f, 0x1.2563fcp-7f, 0x1.d57a60p-8f, 0x1.158db4p-8f, 0x1.adcd2ep-10f,
            -0x1.462ee4p-16f, -0x1.8215e4p-11f, -0x1.b994dcp-11f, -0x1.689becp-11f},
    },
};

/* a * sigmoid(-2 sqrt(2/pi) (a + 0.044715 a^3)), relative error of the polynomials 2^-23.8 */
const struct act_table vtrn_act_table_gelu_tanh = {
    .width = 0x1.000000p-2f, .inverse = 0x1.000000p+2f, .limit = 0x1.e60000p+1f,
    .degree = 5,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0, 0x1.9aee04p-4f, 0x1.3bfa4ap-3f, 0x1.5c3da4p-3f, 0x1.453d22p-3f, 0x1.0eebdcp-3f,
            0x1.9b5ad6p-4f, 0x1.1f8ee0p-4f, 0x1.73ef8ap-5f, 0x1.bdaaa6p-6f, 0x1.ee47fep-7f, 0x1.fa24dap-8f,
            0x1.dcc29ep-9f, 0x1.9b34c8p-10f, 0x1.4310a6p-11f, 0x1.cbce10p-13f},
        { /* t^1 */
            0x1.000000p-1f, 0x1.37f51ap-2f, 0x1.0fa05ep-3f, 0x1.165486p-10f, -0x1.53d224p-4f, -0x1.f5bad8p-4f,
            -0x1.058d3cp-3f, -0x1.c919e8p-4f, -0x1.60a99ep-4f, -0x1.ead1e6p-5f, -0x1.36e63ap-5f, -0x1.679c76p-6f,
            -0x1.7b970cp-7f, -0x1.6caa3ep-8f, -0x1.3d8a6ep-9f, -0x1.f2c962p-11f},
        { /* t^2 */
            -0x1.988448p-2f, -0x1.7f75b4p-2f, -0x1.3b232ap-2f, -0x1.baaf0ap-3f, -0x1.efebe2p-4f, -0x1.4c893ap-5f,
            0x1.f3fa6cp-7f, 0x1.71c8b6p-5f, 0x1.b9dacap-5f, 0x1.92f532p-5f, 0x1.384dbap-5f, 0x1.aa8762p-6f,
            0x1.043e4cp-6f, 0x1.1d0870p-7f, 0x1.182616p-8f, 0x1.ecdbaep-10f},
        { /* t^3 */
            -0x1.cbfbecp-17f, 0x1.04e45cp-4f, 0x1.c36468p-4f, 0x1.08764ep-3f, 0x1.ecb036p-4f, 0x1.793a10p-4f,
            0x1.cfb14cp-5f, 0x1.8d4172p-6f, 0x1.f56daep-11f, -0x1.886410p-7f, -0x1.0be106p-6f, -0x1.f360f0p-7f,
            -0x1.7c8c30p-7f, -0x1.f29b1cp-8f, -0x1.1ddf86p-8f, -0x1.20859cp-9f},
        { /* t^4 */
            0x1.130f02p-4f, 0x1.d5e21ep-5f, 0x1.1242bep-5f, 0x1.197188p-8f, -0x1.4c67f2p-6f, -0x1.13927cp-5f,
            -0x1.2068e8p-5f, -0x1.d0d31ep-6f, -0x1.26f8e4p-6f, -0x1.0d6abep-7f, -0x1.2a8f9ep-10f, 0x1.6b34e2p-9f,
            0x1.0a5b78p-8f, 0x1.e8ba92p-9f, 0x1.62bbc4p-9f, 0x1.af3a44p-10f},
        { /* t^5 */
            -0x1.9cb004p-9f, -0x1.cb5dd4p-7f, -0x1.74994cp-6f, -0x1.74b26cp-6f, -0x1.001826p-6f, -0x1.7c6e90p-8f,
            0x1.730cd8p-9f, 0x1.f43dd0p-8f, 0x1.148248p-7f, 0x1.c1659ep-8f, 0x1.1dacb8p-8f, 0x1.faa9e0p-10f,
            0x1.d75f6ap-13f, -0x1.5c72ecp-11f, -0x1.d52838p-11f, -0x1.9c0826p-11f},
    },
};

/* a * sigmoid(-1.702 a), relative error of the polynomials 2^-24.2 */
const struct act_table vtrn_act_table_gelu_sigmoid = {
    .width = 0x1.800000p-2f, .inverse = 0x1.555556p+1f, .limit = 0x1.734000p+2f,
    .degree = 6,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0, 0x1.097408p-3f, 0x1.4f12bap-3f, 0x1.27f1cep-3f, 0x1.bbc06cp-4f, 0x1.2f54f2p-4f,
            0x1.87d73ep-5f, 0x1.e7d690p-6f, 0x1.281492p-6f, 0x1.60e3e6p-7f, 0x1.9eda0ep-8f, 0x1.e27922p-9f,
            0x1.1622a6p-9f, 0x1.3e6348p-10f, 0x1.6a4568p-11f, 0x1.9a13b8p-12f},
        { /* t^1 */
            0x1.000000p-1f, 0x1.9c3c58p-3f, 0x1.c1489ep-12f, -0x1.5fdfa8p-4f, -0x1.94e1b8p-4f, -0x1.4e1a5ep-4f,
            -0x1.de9576p-5f, -0x1.3d8508p-5f, -0x1.923322p-6f, -0x1.ee247ep-7f, -0x1.29211cp-7f, -0x1.5fbc98p-8f,
            -0x1.9b5af2p-9f, -0x1.dc7364p-10f, -0x1.11c00ap-10f, -0x1.388000p-11f},
        { /* t^2 */
            -0x1.b3b644p-2f, -0x1.635a4ap-2f, -0x1.7c9d76p-3f, -0x1.c26d8ep-5f, 0x1.58347ap-7f, 0x1.f0c4d8p-6f,
            0x1.e38350p-6f, 0x1.720110p-6f, 0x1.fc509cp-7f, 0x1.48d954p-7f, 0x1.99dc70p-8f, 0x1.f20d7ap-9f,
            0x1.2921c2p-9f, 0x1.5dad94p-10f, 0x1.971408p-11f, 0x1.d5c344p-12f},
        { /* t^3 */
            -0x1.0b89d4p-19f, 0x1.020bb6p-3f, 0x1.22392cp-3f, 0x1.62645cp-4f, 0x1.13aad4p-5f, 0x1.65e428p-8f,
            -0x1.3b5adep-8f, -0x1.b64c60p-8f, -0x1.731486p-8f, -0x1.0b14f8p-8f, -0x1.62ea92p-9f, -0x1.c21006p-10f,
            -0x1.14cd6ep-10f, -0x1.4d4a86p-11f, -0x1.8b0246p-12f, -0x1.ce7982p-13f},
        { /* t^4 */
            0x1.a4eb9ep-4f, 0x1.9f9038p-5f, -0x1.7b9858p-6f, -0x1.535b9ap-5f, -0x1.ba695cp-6f, -0x1.7cf962p-7f,
            -0x1.a48db2p-9f, 0x1.e8fc52p-14f, 0x1.0ca038p-10f, 0x1.0d2150p-10f, 0x1.9d5de6p-11f, 0x1.1b880cp-11f,
            0x1.70b026p-12f, 0x1.cad5aap-13f, 0x1.16ef68p-13f, 0x1.4d03eep-14f},
        { /* t^5 */
            -0x1.e5806ap-12f, -0x1.6caadcp-5f, -0x1.a3c454p-6f, 0x1.4c8708p-9f, 0x1.3616cep-7f, 0x1.a11a5cp-8f,
            0x1.773b2ep-9f, 0x1.f29e28p-11f, 0x1.52cdc4p-13f, -0x1.824b48p-14f, -0x1.2189e4p-13f, -0x1.efe15cp-14f,
            -0x1.657b78p-14f, -0x1.dc7e02p-15f, -0x1.2f2538p-15f, -0x1.742176p-16f},
        { /* t^6 */
            -0x1.cbc65ap-6f, -0x1.63080ep-8f, 0x1.0b0f4ap-6f, 0x1.e55660p-8f, -0x1.8eb4aap-11f, -0x1.72ab4ep-10f,
            -0x1.263e8ap-10f, -0x1.4e6560p-11f, -0x1.5d3eb2p-12f, -0x1.a819e8p-14f, -0x1.9293e8p-16f, 0x1.47f992p-16f,
            -0x1.58734ep-19f, 0x1.473e60p-17f, 0x1.1d5b7cp-17f, 0x1.b1b174p-18f},
    },
};

/* log(1 + exp(-a)), relative error of the polynomials 2^-24.4 */
const struct act_table vtrn_act_table_softplus = {
    .width = 0x1.800000p-1f, .inverse = 0x1.555556p+0f, .limit = 0x1.734000p+3f,
    .degree = 6,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0x1.62e430p-1f, 0x1.8c27eap-2f, 0x1.9c7e90p-3f, 0x1.9a7232p-4f, 0x1.8e0710p-5f, 0x1.7cda8cp-6f,
            0x1.6a0334p-7f, 0x1.570090p-8f, 0x1.447e36p-9f, 0x1.32c270p-10f, 0x1.21e534p-11f, 0x1.11e9e6p-12f,
            0x1.02cb0cp-13f, 0x1.e8ff30p-15f, 0x1.cdfa86p-16f, 0x1.b4731cp-17f},
        { /* t^1 */
            -0x1.000006p-1f, -0x1.488564p-2f, -0x1.759b84p-3f, -0x1.868d28p-4f, -0x1.848342p-5f, -0x1.787612p-6f,
            -0x1.680528p-7f, -0x1.561b2ep-8f, -0x1.441778p-9f, -0x1.329482p-10f, -0x1.21d0b2p-11f, -0x1.11e0c0p-12f,
            -0x1.02c6f6p-13f, -0x1.e8fb8cp-15f, -0x1.cdf8e6p-16f, -0x1.b47264p-17f},
        { /* t^2 */
            0x1.000222p-3f, 0x1.be3f84p-4f, 0x1.3173eep-4f, 0x1.614fcap-5f, 0x1.72163cp-6f, 0x1.6fcf60p-7f,
            0x1.64104ep-8f, 0x1.5451f2p-9f, 0x1.434a12p-10f, 0x1.32387cp-11f, 0x1.21a7fap-12f, 0x1.11ce9ep-13f,
            0x1.02beb0p-14f, 0x1.e8f44ep-16f, 0x1.cdf560p-17f, 0x1.b470f0p-18f},
        { /* t^3 */
            -0x1.3c1c9cp-15f, -0x1.aa626cp-7f, -0x1.02acb6p-6f, -0x1.7d4254p-7f, -0x1.bea7e0p-8f, -0x1.d3e1bep-9f,
            -0x1.d05132p-10f, -0x1.c10434p-11f, -0x1.acea30p-12f, -0x1.975558p-13f, -0x1.81c5d2p-14f, -0x1.6cdfdcp-15f,
            -0x1.58e6f0p-16f, -0x1.45ecaap-17f, -0x1.33f328p-18f, -0x1.22f262p-19f},
        { /* t^4 */
            -0x1.4a7b50p-8f, -0x1.6d6ceep-9f, 0x1.54dcf0p-11f, 0x1.c6e076p-10f, 0x1.67c484p-10f, 0x1.a896c6p-11f,
            0x1.bbfecep-12f, 0x1.b7aca8p-13f, 0x1.a8e14cp-14f, 0x1.95a0c2p-15f, 0x1.80b2acp-16f, 0x1.6c5a48p-17f,
            0x1.58d306p-18f, 0x1.45d5cap-19f, 0x1.340828p-20f, 0x1.22eda2p-21f},
        { /* t^5 */
            -0x1.677e08p-12f, 0x1.0dc8f8p-10f, 0x1.4670c2p-11f, 0x1.aad6e0p-16f, -0x1.42cb26p-13f, -0x1.10ec86p-13f,
            -0x1.43dcc0p-14f, -0x1.5256b8p-15f, -0x1.4eb4e2p-16f, -0x1.430cf8p-17f, -0x1.344cc2p-18f, -0x1.24e634p-19f,
            -0x1.151a50p-20f, -0x1.0620a6p-21f, -0x1.ef7b7ep-23f, -0x1.d43aeep-24f},
        { /* t^6 */
            0x1.4132d4p-11f, 0x1.4cee92p-15f, -0x1.408392p-13f, -0x1.7064cap-14f, -0x1.158572p-17f, 0x1.58f9d2p-17f,
            0x1.44683ep-17f, 0x1.93ed6cp-18f, 0x1.91c180p-19f, 0x1.8d5efap-20f, 0x1.b0e304p-21f, 0x1.9573d8p-22f,
            0x1.6498fep-23f, 0x1.5e1604p-24f, 0x1.3b8aaap-25f, 0x1.392a82p-26f},
    },
};

/* tanh(a), relative error of the polynomials 2^-24.2 */
const struct act_table vtrn_act_table_tanh = {
    .width = 0x1.2e0000p-1f, .inverse = 0x1.b20364p+0f, .limit = 0x1.23f900p+3f,
    .degree = 7,
    .rest_slope = 0,
    .term = {
        { /* t^0 */
            0, 0x1.0f3fc0p-1f, 0x1.a79ad2p-1f, 0x1.e31a0ap-1f, 0x1.f6f0b8p-1f, 0x1.fd32b8p-1f,
            0x1.ff231cp-1f, 0x1.ffbc10p-1f, 0x1.ffeb1ep-1f, 0x1.fff994p-1f, 0x1.fffe06p-1f, 0x1.ffff64p-1f,
            0x1.ffffd0p-1f, 0x1.fffff2p-1f, 0x1.fffffcp-1f, 0x1.fffffep-1f},
        { /* t^1 */
            0x1.000000p+0f, 0x1.704c00p-1f, 0x1.430f02p-2f, 0x1.c152f6p-4f, 0x1.1f585ep-5f, 0x1.65a922p-7f,
            0x1.b96a3ep-9f, 0x1.0fad3cp-10f, 0x1.4e256ep-12f, 0x1.9ae0b6p-14f, 0x1.f930e6p-16f, 0x1.3691b6p-17f,
            0x1.7dd884p-19f, 0x1.d57ac2p-21f, 0x1.209cc8p-22f, 0x1.2735eap-24f},
        { /* t^2 */
            0, -0x1.863cc6p-2f, -0x1.0b48f8p-2f, -0x1.a7f776p-4f, -0x1.1a4272p-5f, -0x1.63c22ap-7f,
            -0x1.b8ea9ep-9f, -0x1.0f6b10p-10f, -0x1.500c2ap-12f, -0x1.964678p-14f, -0x1.d84770p-16f, -0x1.f83ff8p-18f,
            -0x1.25d1fap-19f, -0x1.50d248p-19f, -0x1.95587cp-20f, 0x1.9dd028p-20f},
        { /* t^3 */
            -0x1.55549ap-2f, -0x1.366826p-5f, 0x1.c5cebcp-4f, 0x1.f483b8p-5f, 0x1.6af84cp-6f, 0x1.d511b6p-8f,
            0x1.24c9bep-9f, 0x1.69ac0ep-11f, 0x1.bd5042p-13f, 0x1.11e150p-14f, 0x1.50c7e0p-16f, 0x1.9e16e2p-18f,
            0x1.fd20cap-20f, 0x1.38fc26p-21f, 0x1.80d05ep-23f, 0x1.b39a12p-20f},
        { /* t^4 */
            0, 0x1.2d5fecp-3f, -0x1.2e4b76p-8f, -0x1.7b0f52p-6f, -0x1.50dcc4p-7f, -0x1.c61a40p-9f,
            -0x1.187c4cp-10f, -0x1.72ca66p-12f, -0x1.18ba1ap-14f, -0x1.d2613ep-15f, -0x1.ade14ap-15f, -0x1.4ce16ap-15f,
            -0x1.ee377cp-17f, 0x1.1dc070p-15f, 0x1.b410a4p-16f, -0x1.385276p-15f},
        { /* t^5 */
            0x1.10ae2ep-3f, -0x1.91e104p-5f, -0x1.ab664cp-6f, 0x1.012b70p-8f, 0x1.c94c80p-9f, 0x1.5ef066p-10f,
            0x1.cb50ccp-12f, 0x1.1f8d0cp-13f, 0x1.63b788p-15f, 0x1.b5a3b0p-17f, 0x1.0d32b6p-18f, 0x1.4b00e8p-20f,
            0x1.971436p-22f, 0x1.f4ef06p-24f, 0x1.340940p-25f, -0x1.6b389ep-15f},
        { /* t^6 */
            0, -0x1.0510bap-5f, 0x1.12d420p-6f, 0x1.caf288p-10f, -0x1.81542ep-11f, -0x1.465cacp-11f,
            -0x1.92624cp-12f, 0x1.8d68bcp-17f, -0x1.0a01dap-12f, 0x1.1d166cp-13f, 0x1.06be98p-12f, 0x1.d45196p-13f,
            0x1.60ce24p-14f, -0x1.b88880p-13f, -0x1.4e648cp-13f, 0x1.04e24ep-12f},
        { /* t^7 */
            -0x1.9c5834p-5f, 0x1.c95cb4p-6f, -0x1.c3b8eap-9f, -0x1.f12138p-10f, 0x1.b86ae8p-18f, 0x1.64bb4cp-14f,
            0x1.32c1b6p-15f, 0x1.ad254ep-17f, 0x1.073d86p-18f, 0x1.5db3b8p-20f, 0x1.ae4ac8p-22f, 0x1.09f40ap-23f,
            0x1.4278f6p-25f, 0x1.77f6ccp-27f, 0x1.c6eefep-29f, 0x1.616d9ep-12f},
    },
};

/* erf(a), relative error of the polynomials 2^-24.2 */
const struct act_table vtrn_act_table_erf = {
    .width = 0x1.080000p-2f, .inverse = 0x1.f07c20p+1f, .limit = 0x1.fe7800p+1f,
    .degree = 6,
    .rest_slope = -0x1.f7ac92p-25f,
    .term = {
        { /* t^0 */
            0, 0x1.236bf0p-2f, 0x1.117894p-1f, 0x1.73b102p-1f, 0x1.b5e630p-1f, 0x1.dd0788p-1f,
            0x1.f14e82p-1f, 0x1.fa84fep-1f, 0x1.fe3080p-1f, 0x1.ff789ep-1f, 0x1.ffdd18p-1f, 0x1.fff810p-1f,
            0x1.fffe68p-1f, 0x1.ffffb8p-1f, 0x1.fffff4p-1f, 0x1.fffffep-1f},
        { /* t^1 */
            0x1.20dd76p+0f, 0x1.0e4a08p+0f, 0x1.bada5cp-1f, 0x1.3da270p-1f, 0x1.8eed3cp-2f, 0x1.b6a85ep-3f,
            0x1.a64df6p-4f, 0x1.63f414p-5f, 0x1.06ae50p-6f, 0x1.5370bcp-8f, 0x1.8009e8p-10f, 0x1.7c7272p-12f,
            0x1.4a20a2p-14f, 0x1.f6e980p-17f, 0x1.54e1acp-19f, 0x1.da2a3ep-22f},
        { /* t^2 */
            0, -0x1.16bd1ap-2f, -0x1.c8b452p-2f, -0x1.eb56d8p-2f, -0x1.9b6548p-2f, -0x1.1abba4p-2f,
            -0x1.469fc8p-3f, -0x1.412c38p-4f, -0x1.0ef9bep-5f, -0x1.898088p-7f, -0x1.f02c80p-9f, -0x1.0dc8c8p-10f,
            -0x1.e4ae20p-13f, -0x1.8b87f8p-15f, 0x1.1a2f60p-19f, 0x1.5681c0p-18f},
        { /* t^3 */
            -0x1.81264ep-2f, -0x1.387910p-2f, -0x1.1480dep-3f, 0x1.4cae2ap-5f, 0x1.2bb3d8p-3f, 0x1.53b8b0p-3f,
            0x1.0a737ep-3f, 0x1.471d36p-4f, 0x1.48b2fap-5f, 0x1.144b58p-6f, 0x1.8966e0p-8f, 0x1.de22d4p-10f,
            0x1.f2a728p-12f, 0x1.bfea34p-14f, 0x1.5b7c60p-16f, -0x1.ac1d3cp-19f},
        { /* t^4 */
            0, 0x1.0b0128p-3f, 0x1.7a6bcap-3f, 0x1.270a28p-3f, 0x1.e12612p-5f, -0x1.d7dd5ap-7f,
            -0x1.85a1bcp-5f, -0x1.7c6e6cp-5f, -0x1.de3b5cp-6f, -0x1.0f465ep-6f, -0x1.69afb8p-8f, -0x1.20b8fcp-9f,
            -0x1.05ea56p-9f, -0x1.f72a8ep-12f, -0x1.48085cp-10f, -0x1.9198a8p-11f},
        { /* t^5 */
            0x1.cb7744p-4f, 0x1.3dfbdep-4f, 0x1.840efcp-9f, -0x1.cc51b4p-5f, -0x1.1485bap-4f, -0x1.58a6e0p-5f,
            -0x1.418e92p-7f, 0x1.27c404p-7f, 0x1.a75734p-7f, 0x1.332ad2p-7f, 0x1.4139e2p-8f, 0x1.0831d4p-9f,
            0x1.62c222p-11f, 0x1.8c9db6p-13f, 0x1.75995ep-15f, 0x1.a33db6p-12f},
        { /* t^6 */
            0, -0x1.9e5584p-5f, -0x1.73a616p-4f, -0x1.2ba564p-6f, -0x1.310d54p-10f, 0x1.ae3c92p-8f,
            0x1.541ad8p-6f, 0x1.7d621cp-6f, -0x1.3877a8p-5f, 0x1.d95b34p-6f, -0x1.101ae0p-5f, -0x1.54d216p-9f,
            0x1.5c2fe6p-5f, 0x1.47b6bap-7f, 0x1.3ed564p-5f, 0x1.a8d860p-6f},
    },
};
