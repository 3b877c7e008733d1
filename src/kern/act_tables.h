/* Inside kern/ only: piecewise polynomials of activation functions, one set of numbers for every level.
 *
 * a = |x| <= limit lies in piece p = nearest integer to a / width, 0 <= p < 16; with t = a - p * width (exact) the value is
 * term[0][p] + t * (term[1][p] + t * (... + t * term[degree][p])), every step an fma. Sixteen pieces, because one vector
 * register of the widest level holds sixteen numbers to pick from. Where rest_slope is not 0 (erf, whose slope at 0 is not
 * near any fp32), term[0][p] + rest_slope * t takes the place of term[0][p]. */
#ifndef VTRN_ACT_TABLES_H
#define VTRN_ACT_TABLES_H

enum { ACT_PIECES = 16, ACT_MAX_DEGREE = 7 };
struct act_table {
    float width, inverse /* 1 / width */, limit;
    int degree;
    float rest_slope;
    float term[ACT_MAX_DEGREE + 1][ACT_PIECES];
};
/* What is added so that the low bits of the sum are the nearest integer: 1.5 * 2^23. */
#define ACT_ROUND 0x1.8p23f

/* The functions of a >= 0 are in act_tables.c; these say how f(x) follows. */
extern const struct act_table vtrn_act_table_sigmoid; /* x < 0 ? T : 1 - T */
extern const struct act_table vtrn_act_table_silu;    /* max(x, 0) - T, and the next three */
extern const struct act_table vtrn_act_table_gelu;
extern const struct act_table vtrn_act_table_gelu_tanh;
extern const struct act_table vtrn_act_table_gelu_sigmoid;
extern const struct act_table vtrn_act_table_softplus; /* max(x, 0) + T */
extern const struct act_table vtrn_act_table_tanh;     /* sign of x, T; a beyond the limit is the limit */
extern const struct act_table vtrn_act_table_erf;      /* likewise */
#endif
