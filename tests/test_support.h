/* test_support.h: cmocka with the headers it wants in front of it. Include it first in every test. */
#ifndef TD_TEST_SUPPORT_H
#define TD_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tdbg.h"

/* In `make check` (TDBG_QUICK is set) the long tests take fewer rounds of the same kind. */
static inline bool quick(void)
{
    return getenv("TDBG_QUICK") != NULL;
}

#define assert_ok(expression) assert_int_equal((expression), TDBG_OK)

/* The call fails with this status and exactly this message in `error`. */
#define assert_fails(expression, expected, text)    \
    do {                                            \
        assert_int_equal((expression), (expected)); \
        assert_string_equal(error.message, (text)); \
    } while (0)

#endif
