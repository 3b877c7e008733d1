/* Status codes of every vtrn call: 0 is success, negative is an error, positive is "not yet".
 * One X-macro, so that the enum, the names and the descriptions cannot drift apart. */
#ifndef VTRN_STATUS_H
#define VTRN_STATUS_H

/* What the shared library exports; everything else in it is hidden. */
#if defined(__GNUC__)
#define VTRN_API __attribute__((visibility("default")))
#else
#define VTRN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* name, value, what it means. Grouped by what is lost: the call, the program, the run, the host. */
#define VTRN_STATUS_MAP(X) \
    X(BLOCKED, 1, "waits for another core or for more of the program") \
    X(OK, 0, "success") \
    X(INVALID, -1, "a wrong argument: the call did nothing") \
    X(ILLEGAL, -2, "an instruction breaks a rule of the target") \
    X(UNSUPPORTED, -3, "known to the hardware or the API, not to vtrn") \
    X(FORMAT, -4, "a file or a text is not what it should be") \
    X(LIMIT, -5, "a size is beyond what the format or the target can hold") \
    X(FAULT, -6, "the emulated machine faulted; the fault record says where") \
    X(DEADLOCK, -7, "every core waits and none can go on") \
    X(NOMEM, -8, "the host has no memory for it") \
    X(IO, -9, "the host could not read or write a file") \
    X(INTERRUPTED, -10, "the user stopped the run")

enum vtrn_status {
#define X(name, value, text) VTRN_##name = value,
    VTRN_STATUS_MAP(X)
#undef X
};

/* The name ("ILLEGAL") and the meaning of a status; never NULL. */
VTRN_API const char *vtrn_status_name(enum vtrn_status status);
VTRN_API const char *vtrn_status_text(enum vtrn_status status);

/* Why a call failed: one line that names rule, operand, value, limit and what to do. The caller owns it and may pass NULL. */
struct vtrn_error {
    enum vtrn_status status;
    char text[1008];
};

#ifdef __cplusplus
}
#endif
#endif
