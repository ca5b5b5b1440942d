// SPDX-License-Identifier: Apache-2.0
// In place of the parser of TypeScript, in a build that has none: a file of TypeScript is refused by name (link.js).
export const tsPlugin = null;
