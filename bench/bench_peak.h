/* What one core can do on registers alone, by CPU level: the measure that benchmarks are stated in. Each call runs for
 * about a third of a millisecond and returns flop per nanosecond. */
#ifndef VTRN_BENCH_PEAK_H
#define VTRN_BENCH_PEAK_H
#include "base/base.h"

double vtrn_bench_fma_rate(enum vtrn_cpu_level level);
/* VDPBF16PS where the level has it, else fma. */
double vtrn_bench_pairs_rate(enum vtrn_cpu_level level);
const char *vtrn_bench_pairs_name(enum vtrn_cpu_level level);
#endif
