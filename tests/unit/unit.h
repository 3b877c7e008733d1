/* What every unit test needs: cmocka with its includes in the right order. */
#ifndef VTRN_TESTS_UNIT_H
#define VTRN_TESTS_UNIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#endif
