/* The public headers are enough by themselves, and a program that includes nothing else links with the library. */
#include "vtrn/vtrn.h"
#include "vtrn/vtrn.h" /* twice does no harm */

int main(void)
{
    struct vtrn_machine_options options;
    struct vtrn_target_info info;

    vtrn_machine_options_init(&options);
    if (options.size_bytes != sizeof options) return 1;
    return vtrn_target_get(0, &info, sizeof info) == VTRN_OK && vtrn_version() && vtrn_status_name(VTRN_OK) ? 0 : 1;
}
