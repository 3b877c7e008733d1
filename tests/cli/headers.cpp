// The public headers in C++: the same calls as headers.c, with C linkage.
#include "vtrn/status.h"

#include "vtrn/vtrn.h"

int main()
{
    vtrn_machine_options options;
    vtrn_target_info info;

    vtrn_machine_options_init(&options);
    if (options.size_bytes != sizeof options) return 1;
    return vtrn_target_get(0, &info, sizeof info) == VTRN_OK && vtrn_version() && vtrn_status_name(VTRN_OK) ? 0 : 1;
}
