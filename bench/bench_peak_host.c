/* bench_peak.h for other languages: the peak of the level that the library uses on this host. A shared library, so that Python
 * measures the peak in the process whose work it compares with it. */
#include "bench_peak.h"

VTRN_API double bench_peak_pairs(void);

double bench_peak_pairs(void) { return vtrn_bench_pairs_rate(vtrn_cpu_level()); }
