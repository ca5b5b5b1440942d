// SPDX-License-Identifier: Apache-2.0
// Which name means what: every use of an identifier with the scope that declares it, or none. Modules need it to replace the
// names that they import, sessions to move their declarations, rules to tell a global from a program's own name.
//
// A scope is resolved when it ends, so that a use before its declaration finds it; what a scope does not declare goes on to its parent.
import { bound } from './nodes.js';

class Scope {
  constructor(parent, kind) {
    this.parent = parent;
    this.kind = kind; // function, block
    this.names = new Map();
    this.uses = [];
  }

  declare(name, kind) {
    if (!this.names.has(name)) this.names.set(name, { name, kind, uses: [], scope: this });
    return this.names.get(name);
  }

  functionScope() {
    let at = this;
    while (at.kind !== 'function') at = at.parent;
    return at;
  }

  end() {
    for (const use of this.uses) {
      const binding = this.names.get(use.node.name);
      if (binding) {
        use.binding = binding;
        binding.uses.push(use);
      } else if (this.parent) {
        this.parent.uses.push(use);
      }
    }
  }
}

// -> {top: the scope of the program, free: uses that nothing declares, inFunction: whether a use is inside a function}
export const analyse = (tree) => {
  let scope = new Scope(null, 'function');
  const top = scope;
  let functions = 0;

  const inside = (kind, work) => {
    scope = new Scope(scope, kind);
    const own = scope;
    work();
    own.end();
    scope = own.parent;
  };
  const use = (node, role, holder) => scope.uses.push({ node, role, holder, binding: null, inFunction: functions > 0 });
  const list = (nodes) => { for (const node of nodes) visit(node); };

  // A pattern that declares: its names are declared, its defaults and computed keys are expressions.
  const declarePattern = (pattern, kind, into) => {
    for (const id of bound(pattern)) into.declare(id.name, kind);
    defaults(pattern);
  };
  const defaults = (pattern) => {
    if (!pattern) return;
    if (pattern.type === 'AssignmentPattern') {
      defaults(pattern.left);
      visit(pattern.right);
    } else if (pattern.type === 'RestElement') {
      defaults(pattern.argument);
    } else if (pattern.type === 'ArrayPattern') {
      for (const element of pattern.elements) defaults(element);
    } else if (pattern.type === 'ObjectPattern') {
      for (const entry of pattern.properties) {
        if (entry.type === 'Property' && entry.computed) visit(entry.key);
        defaults(entry.type === 'Property' ? entry.value : entry);
      }
    }
  };
  // A pattern that is assigned to: its names are uses.
  const target = (node, holder) => {
    if (!node) return;
    if (node.type === 'Identifier') use(node, 'write', holder);
    else if (node.type === 'AssignmentPattern') { target(node.left, holder); visit(node.right); }
    else if (node.type === 'RestElement') target(node.argument);
    else if (node.type === 'ArrayPattern') for (const element of node.elements) target(element);
    else if (node.type === 'ObjectPattern') {
      for (const entry of node.properties) {
        if (entry.type !== 'Property') { target(entry); continue; }
        if (entry.computed) visit(entry.key);
        target(entry.value, entry.shorthand ? entry : undefined);
      }
    } else visit(node);
  };

  const functionParts = (node) => {
    inside('function', () => {
      functions++;
      if (node.type === 'FunctionExpression' && node.id) scope.declare(node.id.name, 'name');
      inside('function', () => {
        if (node.type !== 'ArrowFunctionExpression') scope.declare('arguments', 'arguments');
        for (const param of node.params) declarePattern(param, 'param', scope);
        if (node.body.type === 'BlockStatement') inside('function', () => list(node.body.body));
        else visit(node.body);
      });
      functions--;
    });
  };
  const classParts = (node) => {
    inside('block', () => {
      if (node.id) scope.declare(node.id.name, 'class');
      if (node.superClass) visit(node.superClass);
      for (const part of node.body.body) {
        if (part.type === 'StaticBlock') {
          inside('function', () => { functions++; list(part.body); functions--; });
          continue;
        }
        if (part.computed) visit(part.key);
        if (!part.value) continue;
        if (part.type === 'PropertyDefinition') inside('function', () => { functions++; visit(part.value); functions--; });
        else visit(part.value);
      }
    });
  };
  const loop = (node, parts) => inside('block', () => { for (const part of parts) if (node[part]) visit(node[part]); });
  const loopOver = (node) => inside('block', () => {
    if (node.left.type === 'VariableDeclaration') visit(node.left);
    else target(node.left);
    visit(node.right);
    visit(node.body);
  });

  const visitors = {
    Program: (node) => list(node.body),
    Identifier: (node) => use(node, 'read'),
    BlockStatement: (node) => inside('block', () => list(node.body)),
    SwitchStatement: (node) => { visit(node.discriminant); inside('block', () => list(node.cases)); },
    ForStatement: (node) => loop(node, ['init', 'test', 'update', 'body']),
    ForInStatement: loopOver,
    ForOfStatement: loopOver,
    TryStatement: (node) => {
      visit(node.block);
      if (node.handler) inside('block', () => {
        if (node.handler.param) declarePattern(node.handler.param, 'catch', scope);
        visit(node.handler.body);
      });
      if (node.finalizer) visit(node.finalizer);
    },
    LabeledStatement: (node) => visit(node.body),
    BreakStatement: () => {},
    ContinueStatement: () => {},
    FunctionDeclaration: (node) => {
      if (node.id) {
        scope.declare(node.id.name, 'function');
        // in sloppy code a function of a block is a variable of the function as well
        if (scope.kind !== 'function') scope.functionScope().declare(node.id.name, 'var');
      }
      functionParts(node);
    },
    FunctionExpression: functionParts,
    ArrowFunctionExpression: functionParts,
    ClassDeclaration: (node) => {
      if (node.id) scope.declare(node.id.name, 'class');
      classParts(node);
    },
    ClassExpression: classParts,
    VariableDeclaration: (node) => {
      const into = node.kind === 'var' ? scope.functionScope() : scope;
      for (const declarator of node.declarations) {
        declarePattern(declarator.id, node.kind, into);
        if (declarator.init) visit(declarator.init);
      }
    },
    AssignmentExpression: (node) => { target(node.left); visit(node.right); },
    UpdateExpression: (node) => (node.argument.type === 'Identifier' ? use(node.argument, 'write') : visit(node.argument)),
    MemberExpression: (node) => { visit(node.object); if (node.computed) visit(node.property); },
    Property: (node) => {
      if (node.computed) visit(node.key);
      if (node.shorthand && node.value.type === 'Identifier') use(node.value, 'read', node);
      else visit(node.value);
    },
    CallExpression: (node) => {
      if (node.callee.type === 'Identifier') use(node.callee, 'call');
      else visit(node.callee);
      list(node.arguments);
    },
    TaggedTemplateExpression: (node) => {
      if (node.tag.type === 'Identifier') use(node.tag, 'call');
      else visit(node.tag);
      visit(node.quasi);
    },
    MetaProperty: () => {},
    ImportDeclaration: (node) => { for (const specifier of node.specifiers) scope.declare(specifier.local.name, 'import').specifier = specifier; },
    ExportNamedDeclaration: (node) => {
      if (node.declaration) visit(node.declaration);
      else if (!node.source) for (const specifier of node.specifiers) use(specifier.local, 'export');
    },
    ExportDefaultDeclaration: (node) => visit(node.declaration),
    ExportAllDeclaration: () => {},
  };
  const simple = {
    ExpressionStatement: ['expression'], WithStatement: ['object', 'body'], ReturnStatement: ['argument'], IfStatement: ['test', 'consequent', 'alternate'],
    SwitchCase: ['test', 'consequent'], ThrowStatement: ['argument'], WhileStatement: ['test', 'body'], DoWhileStatement: ['body', 'test'],
    ArrayExpression: ['elements'], ObjectExpression: ['properties'], UnaryExpression: ['argument'], BinaryExpression: ['left', 'right'],
    LogicalExpression: ['left', 'right'], ConditionalExpression: ['test', 'consequent', 'alternate'], NewExpression: ['callee', 'arguments'],
    SequenceExpression: ['expressions'], SpreadElement: ['argument'], YieldExpression: ['argument'], AwaitExpression: ['argument'],
    ChainExpression: ['expression'], ImportExpression: ['source', 'options'], TemplateLiteral: ['expressions'],
  };
  const visit = (node) => {
    if (!node) return;
    const own = visitors[node.type];
    if (own) { own(node); return; }
    for (const field of simple[node.type] || []) {
      if (Array.isArray(node[field])) list(node[field]);
      else visit(node[field]);
    }
  };

  visit(tree);
  top.end();
  return { top, free: top.uses.filter((u) => !u.binding) };
};
