# SPDX-License-Identifier: Apache-2.0
"""warnings.catch_warnings without its argument `module`, whose attributes it would set, and without holding that module."""
import warnings


class catch_warnings:
    def __init__(self, *, record=False, module=None, action=None, category=Warning, lineno=0, append=False):
        if module is not None:
            raise TypeError("module= is for tests of warnings itself; leave it out")
        self._record, self._entered = record, False
        self._filter = None if action is None else (action, category, lineno, append)

    def __enter__(self):
        if self._entered:
            raise RuntimeError(f"Cannot enter {self!r} twice")
        self._entered = True
        self._filters, self._shown = warnings.filters, (warnings.showwarning, warnings._showwarnmsg_impl)
        warnings.filters = self._filters[:]
        warnings._filters_mutated()
        if self._filter is not None:
            warnings.simplefilter(*self._filter)
        if not self._record:
            return None
        log = []
        warnings.showwarning, warnings._showwarnmsg_impl = warnings._showwarning_orig, log.append
        return log

    def __exit__(self, *exc_info):
        if not self._entered:
            raise RuntimeError(f"Cannot exit {self!r} without entering first")
        warnings.filters = self._filters
        warnings._filters_mutated()
        warnings.showwarning, warnings._showwarnmsg_impl = self._shown


warnings.catch_warnings = catch_warnings
