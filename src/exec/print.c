/* device_print: a tensor's value as text, laid out as NumPy prints arrays.
 *
 * Rules followed (NumPy's print options at their defaults): more than 1000 elements show the first and last 3 of every long
 * axis; lines of 75 columns; floats with the fewest digits that tell them from their neighbours in their own dtype, at
 * most 8 after the point, all padded alike; exponents when the magnitudes reach 1e8, fall below 1e-4 or span more than 1000.
 * Only the shown elements decide the widths. One call gives one text.
 * Reads elements one by one; knows nothing of who shows the text. */
#include <math.h>

#include "exec/walk_int.h"

enum { EDGE = 3, SUMMARY_ABOVE = 1000, LINE = 75, DIGITS = 8, WORD = 48 };

struct printer {
    const struct exec_view *view;
    const struct vtrn_ap *ap;
    struct vtrn_buf *out;
    bool summary, floats, exponents;
    int left, right; /* floats: columns before and after the point; integers: width in `left` */
    int exponent_digits;
    bool finite_seen, nan_seen, inf_seen, negative_inf_seen;
    double largest, smallest;
    int64_t index[VTRN_AP_DIMS];
    int column; /* of the line being built, hanging indent included */
    enum vtrn_status status;
};

static const uint8_t *element(const struct printer *printer)
{
    int64_t i = 0;
    for (int d = 1; d < printer->ap->ndim; d++) i = i * printer->ap->dim[d].count + printer->index[d];
    return exec_elem(printer->view, printer->index[0], i);
}

static float value_of(const struct printer *printer) { return vtrn_to_f32(printer->view->dtype, element(printer)); }

/* Digits behind the first that tell `value` from its neighbours in the dtype, and its decimal exponent. */
static int shortest(uint8_t dtype, float value, int *exponent_out)
{
    uint32_t want = 0, got;
    char text[WORD];
    int digits = 0;
    vtrn_from_f32(dtype, value, &want);
    for (; digits <= DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, (double)value);
        got = 0;
        vtrn_from_f32(dtype, strtof(text, NULL), &got);
        if (got == want) break;
    }
    if (digits > DIGITS) digits = DIGITS;
    *exponent_out = atoi(strchr(text, 'e') + 1);
    return digits;
}

/* "-12.5", "3.": the point always, zeros behind it never. */
static void positional(uint8_t dtype, float value, char *out, size_t size)
{
    int exponent, fraction = shortest(dtype, value, &exponent) - exponent;
    if (value == 0.0f || fraction < 0) fraction = 0;
    snprintf(out, size, fraction ? "%.*f" : "%.*f.", fraction > DIGITS ? DIGITS : fraction, (double)value);
    char *end = out + strlen(out);
    while (end[-1] == '0') end--;
    *end = 0;
}

/* ---- words ---- */
/* `before` blanks, the text, blanks up to `width`. */
static void pad(char *out, size_t size, int before, const char *text, int width)
{
    size_t at = 0, end = (size_t)(width > 0 ? width : 0);
    for (; before > 0 && at + 1 < size; before--) out[at++] = ' ';
    for (; *text && at + 1 < size; text++) out[at++] = *text;
    for (; at < end && at + 1 < size;) out[at++] = ' ';
    out[at] = 0;
}

static void float_word(const struct printer *printer, float value, char *out, size_t size)
{
    char text[WORD], exponent[16];
    int width = printer->left + 1 + printer->right;
    if (!isfinite(value)) {
        const char *name = isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
        pad(out, size, width - (int)strlen(name), name, width);
    } else if (printer->exponents) {
        int fraction = printer->right - printer->exponent_digits - 2;
        snprintf(text, sizeof text, "%.*e", fraction, (double)value);
        char *e = strchr(text, 'e');
        int power = atoi(e + 1);
        snprintf(exponent, sizeof exponent, "%se%c%0*d", fraction ? "" : ".", power < 0 ? '-' : '+', printer->exponent_digits,
                 abs(power));
        strcpy(e, exponent);
        pad(out, size, printer->left - (signbit(value) ? 2 : 1), text, width);
    } else {
        positional(printer->view->dtype, value, text, sizeof text);
        pad(out, size, printer->left - (int)(strchr(text, '.') - text), text, width);
    }
}

static void integer_word(const struct printer *printer, char *out, size_t size)
{
    uint8_t dtype = printer->view->dtype;
    const uint8_t *at = element(printer);
    if (dtype == VTRN_DT_BOOL) {
        snprintf(out, size, "%5s", *at ? "True" : "False");
    } else if (vtrn_dtypes[dtype].cls == VTRN_CLASS_PACKED) {
        uint32_t bits = 0;
        memcpy(&bits, at, printer->view->elem_bytes);
        snprintf(out, size, "0x%0*x", 2 * printer->view->elem_bytes, bits);
    } else {
        snprintf(out, size, "%*lld", printer->left, (long long)exec_int_load(dtype, at));
    }
}

static void word(const struct printer *printer, char *out, size_t size)
{
    if (printer->floats) float_word(printer, value_of(printer), out, size);
    else integer_word(printer, out, size);
}

/* ---- walking what is shown ---- */
static int64_t hidden_from(const struct printer *printer, int axis) /* -1: the whole axis is shown */
{
    return printer->summary && printer->ap->dim[axis].count > 2 * EDGE ? EDGE : -1;
}

static int64_t next_shown(const struct printer *printer, int axis, int64_t i)
{
    return ++i == hidden_from(printer, axis) ? printer->ap->dim[axis].count - EDGE : i;
}

static void for_shown(struct printer *printer, int axis, void (*visit)(struct printer *))
{
    if (axis == printer->ap->ndim) {
        visit(printer);
        return;
    }
    for (int64_t i = 0; i < printer->ap->dim[axis].count; i = next_shown(printer, axis, i)) {
        printer->index[axis] = i;
        for_shown(printer, axis + 1, visit);
    }
}

/* ---- widths ---- */
static void see_magnitude(struct printer *printer)
{
    float value = value_of(printer);
    double size = fabs((double)value);
    if (isnan(value)) {
        printer->nan_seen = true;
    } else if (isinf(value)) {
        printer->inf_seen = true;
        printer->negative_inf_seen = printer->negative_inf_seen || value < 0;
    } else {
        printer->finite_seen = true;
        if (size == 0) return;
        if (size > printer->largest) printer->largest = size;
        if (printer->smallest == 0 || size < printer->smallest) printer->smallest = size;
    }
}

static int max_int(int a, int b) { return a > b ? a : b; }

static void see_float_width(struct printer *printer)
{
    float value = value_of(printer);
    char text[WORD];
    if (!isfinite(value)) return;
    if (printer->exponents) {
        int power, digits = shortest(printer->view->dtype, value, &power);
        printer->exponent_digits = max_int(printer->exponent_digits, abs(power) >= 100 ? 3 : 2);
        printer->left = max_int(printer->left, signbit(value) ? 2 : 1);
        printer->right = max_int(printer->right, value == 0.0f ? 0 : digits); /* of the mantissa; measure adds the rest */
    } else {
        positional(printer->view->dtype, value, text, sizeof text);
        const char *point = strchr(text, '.');
        printer->left = max_int(printer->left, (int)(point - text));
        printer->right = max_int(printer->right, (int)strlen(point + 1));
    }
}

static void see_integer_width(struct printer *printer)
{
    char text[WORD];
    integer_word(printer, text, sizeof text);
    printer->left = max_int(printer->left, (int)strlen(text));
}

static void measure(struct printer *printer)
{
    if (!printer->floats) {
        for_shown(printer, 0, see_integer_width);
        return;
    }
    for_shown(printer, 0, see_magnitude);
    printer->exponents = printer->largest >= 1e8 ||
                         (printer->smallest > 0 && (printer->smallest < 1e-4 || printer->largest / printer->smallest > 1000));
    for_shown(printer, 0, see_float_width);
    if (printer->exponents) printer->right += printer->exponent_digits + 2;
    int others = printer->negative_inf_seen ? 4 : printer->nan_seen || printer->inf_seen ? 3 : 0;
    int behind = printer->right + 1;
    if (!printer->finite_seen) { /* no numbers at all: the words alone */
        printer->left = others > 0 ? others - 1 : 0;
        printer->right = 0;
        return;
    }
    printer->left = max_int(printer->left, others - behind);
}

/* ---- layout ---- */
static void emit(struct printer *printer, const char *text)
{
    if (printer->status == VTRN_OK) printer->status = vtrn_buf_append(printer->out, text, strlen(text));
}

static void new_lines(struct printer *printer, int count, int indent)
{
    for (int k = 0; k < count; k++) emit(printer, "\n");
    for (int k = 0; k < indent; k++) emit(printer, " ");
    printer->column = indent;
}

/* A word of the last axis: on this line when it fits. `first`: nothing is on the line yet. */
static void put_word(struct printer *printer, const char *text, int indent, int width, bool first)
{
    int length = (int)strlen(text), gap = first ? 0 : 1;
    if (!first && printer->column + gap + length > width) {
        while (printer->out->data[printer->out->size - 1] == ' ') printer->out->size--; /* padding of the last word */
        new_lines(printer, 1, indent);
        gap = 0;
    }
    if (gap) emit(printer, " ");
    emit(printer, text);
    printer->column += gap + length;
}

static void put_axis(struct printer *printer, int axis)
{
    int ndim = printer->ap->ndim, indent = axis + 1, width = LINE - axis - 1;
    bool last = axis == ndim - 1, first = true;
    char text[WORD];
    emit(printer, "[");
    if (last) printer->column = indent;
    for (int64_t i = 0; i < printer->ap->dim[axis].count; i = next_shown(printer, axis, i)) {
        printer->index[axis] = i;
        if (i > 0 && hidden_from(printer, axis) > 0 && i == printer->ap->dim[axis].count - EDGE) {
            if (last) {
                put_word(printer, "...", indent, width, false);
            } else {
                new_lines(printer, ndim - 1 - axis, indent);
                emit(printer, "...");
            }
        }
        if (last) {
            word(printer, text, sizeof text);
            put_word(printer, text, indent, width, first);
        } else {
            if (!first) new_lines(printer, ndim - 1 - axis, indent);
            put_axis(printer, axis + 1);
        }
        first = false;
    }
    emit(printer, "]");
}

/* "prefix bfloat16 (128, 512)" and the value below. */
static enum vtrn_status format(struct vtrn_core *core, const struct vtrn_args_device_print *arg, const struct exec_view *view,
                               struct vtrn_buf *out)
{
    const struct vtrn_ap *ap = &arg->tensor.ap;
    uint8_t cls = vtrn_dtypes[view->dtype].cls;
    struct printer printer = { .view = view, .ap = ap, .out = out, .floats = cls == VTRN_CLASS_FLOAT };
    printer.summary = vtrn_ap_elems(ap) > SUMMARY_ABOVE;
    const char *prefix = vtrn_prog_text(core->prog, (uint32_t)arg->print_prefix.i);
    VTRN_TRY(vtrn_buf_printf(out, "%s%s%s (", prefix, *prefix ? " " : "", vtrn_dtypes[view->dtype].nki_name));
    for (int d = 0; d < ap->ndim; d++)
        VTRN_TRY(vtrn_buf_printf(out, "%s%lld%s", d ? ", " : "", (long long)ap->dim[d].count, ap->ndim == 1 ? "," : ""));
    VTRN_TRY(vtrn_buf_printf(out, ")\n"));
    measure(&printer);
    put_axis(&printer, 0);
    VTRN_TRY(printer.status);
    return vtrn_buf_append(out, "\n", 2); /* with the terminating 0 */
}

/* Does: prints print_prefix, dtype, shape and value of tensor when the instruction is reached. Long tensors are cut as
 *   NumPy cuts them. The text goes to the run's print function, or to stderr.
 * Rounding: values print with the fewest digits that identify them in their dtype, at most 8 after the point.
 * Faults: none of its own.
 * Differs: hardware writes a file for each print through the runtime's debug stream. */
enum vtrn_status vtrn_exec_device_print(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_device_print *arg = VTRN_ARGS(device_print, inst);
    struct exec_view view;
    struct vtrn_buf text = { 0 };
    VTRN_TRY(exec_resolve(core, &arg->tensor.ap, VTRN_READ, &view));
    enum vtrn_status status = format(core, arg, &view, &text);
    if (status == VTRN_OK) {
        if (core->options.print) core->options.print(core->options.print_self, core->id, (const char *)text.data);
        else fputs((const char *)text.data, stderr);
    }
    vtrn_buf_fini(&text);
    if (status != VTRN_OK) vtrn_fail(&core->err, status, "no memory for the text of a print");
    return status;
}
