/* Inside isa/ only: the reader of the text form, in three files: token.c (characters, integers, strings), parse_pattern.c
 * (tensors and patterns), parse.c (values and the line). */
#ifndef VTRN_TEXT_INT_H
#define VTRN_TEXT_INT_H
#include "isa/isa.h"

struct parser {
    const char *start, *at, *end;
    const struct vtrn_text_names *names;
    struct vtrn_inst *inst;
    const char *operand; /* whose value is being read */
    struct vtrn_error *err;
};

/* FORMAT with column, operand, what was found at `at`, and `what` is possible there. */
enum vtrn_status isa_fail_at(struct parser *p, const char *at, const char *what);
void isa_skip_space(struct parser *p);
bool isa_at_end(struct parser *p); /* of the line: nothing or a comment follows */
char isa_peek(struct parser *p);   /* the next character after spaces, '\0' at the end */
bool isa_eat(struct parser *p, char c);
enum vtrn_status isa_expect(struct parser *p, char c);
size_t isa_word_length(struct parser *p); /* letters, digits and underscores at p->at */
bool isa_eat_word(struct parser *p, const char *word);
enum vtrn_status isa_parse_i64(struct parser *p, int64_t min, int64_t max, int64_t *out);
/* A quoted text without its escapes. The caller finishes `out` in every case. */
enum vtrn_status isa_parse_quoted(struct parser *p, struct vtrn_buf *out);
/* "text", by way of the program's table, or $N. */
enum vtrn_status isa_parse_string(struct parser *p, int64_t *index_out);
enum vtrn_status isa_parse_ap(struct parser *p, struct vtrn_ap *ap);
/* "{" patterns "}" */
enum vtrn_status isa_parse_aps(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value);
#endif
