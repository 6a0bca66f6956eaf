/* SPDX-License-Identifier: BSD-3-Clause */
/* The main() that all unit tests share: UNIT_MAIN("name", test1, test2, ...). */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

static inline int
unit_run(const char *name, const TTest *const *tests, size_t count)
{
	Suite *s = suite_create(name);
	TCase *c = tcase_create(name);
	SRunner *r;
	int failed;

	tcase_set_timeout(c, 0); /* that is meson's to watch, which knows about sanitizers */
	for (size_t i = 0; i < count; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define UNIT_MAIN(name, ...) \
	int main(void) \
	{ \
		const TTest *const tests[] = {__VA_ARGS__}; \
		return unit_run(name, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif /* UNIT_H */
