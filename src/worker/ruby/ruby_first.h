/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby's headers, with the warnings off that they would raise.
 *
 * Takes:   nothing.
 * Gives:   ruby.h and the functions that it does not declare but the library exports.
 * Never:   is included by a header.
 * Runs in: cordon-ruby.
 */
#ifndef WORKER_RUBY_RUBY_FIRST_H
#define WORKER_RUBY_RUBY_FIRST_H

#include <ruby.h>
#include <ruby/encoding.h>
#include <ruby/onigmo.h>
#include <ruby/version.h>
#include <ruby/vm.h>

#endif
