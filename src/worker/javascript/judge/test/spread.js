// SPDX-License-Identifier: Apache-2.0
// Every place where a line may end, and what stands behind it: the test compares the lines of its statements and calls with those of what is written.
'use strict';

const one = f(
  1,
  g(2),
  [
    h(3), ,
    ...i(4),
  ],
  {
    a: j(5),
    [k(6)]: 7,
    get b() {
      return l(8);
    },
    async *c() {
      yield (
        m(9)
      );
    },
    ...n(10),
  },
);

function named(
  a = o(11),
  { b = p(12), ...c } = q(13),
  ...d
) {
  if (
    r(14)
  )
    s(15);
  else if (t(16)) u(17);
  else
    v(18);
  return (
    w(19) &&
      x(20)
  );
}

class Of extends y(21) {
  #field = z(22);

  static [aa(23)] = 1;

  static {
    bb(24);
  }

  async method() {
    await (
      cc(25)
    );
    for await (
      const e of dd(26)
    ) {
      continue;
    }
  }
}

outer:
for (
  let i = ee(27),
    j = ff(28);
  gg(29);
  hh(30)
) {
  switch (
    ii(31)
  ) {
    case jj(32):
      break outer;

    default:
      kk(33);
  }
}

do {
  ll(34);
} while (
  mm(35)
);

try {
  nn(36);
} catch {
  oo(37);
} finally {
  pp(38);
}

const text = `a
${qq(39)}
b ${
  rr(40)
}`;

const chain = ss(41)
  .map(
    (a) =>
      tt(42),
  )
  ?.filter(
    async (b) => {
      throw (
        uu(43)
      );
    },
  )
  [
    vv(44)
  ];

void (
  ww(45),
  new xx(
    yy(46),
  )
);

typeof (
  zz(47)
) in
  ab(48)
  ? ac(49)
  : !ad(50);
