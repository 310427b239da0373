/* operand.h: PATH or PATH:NAME[slice] on the command line, opened. */
#ifndef TD_CLI_OPERAND_H
#define TD_CLI_OPERAND_H

#include "cli/cli.h"
#include "session/target.h"

/* Must not be moved once opened (see td_selection). */
struct operand {
    struct td_target target;
    struct td_input *input;
    bool lent;                     /* the input is somebody else's to close */
    bool named;                    /* one tensor was named, and `selection` is it */
    struct td_selection selection; /* of the named tensor */
    char *slice;                   /* without brackets, "" when none was given; NULL unless named */
};

/* Opens PATH, and finds the tensor when one is named or `single` wants one. On failure the error is printed
 * and the exit status returned; else EXIT_FINE. */
int operand_open(struct cli *cli, const char *text, bool single, struct operand *out);
void operand_release(struct operand *o);

/* The tensors meant: the named one, or all. */
size_t operand_count(const struct operand *o);
const struct td_tensor *operand_tensor(const struct operand *o, size_t i);

/* All operands of a command. Those that fail are reported and left out. */
struct operands {
    struct operand *items;
    size_t count;
    int status; /* EXIT_FINE, or that of the last one that failed */
};

void operands_open(struct cli *cli, const struct args *args, struct operands *out);
void operands_release(struct operands *o);

#endif
