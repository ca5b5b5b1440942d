// SPDX-License-Identifier: Apache-2.0
// An official client, v1 or v2, at `cordon serve --stdio`: what it saw, as one JSON object. Its person says yes to every question.
// Where every step has to be approved, it is asked for each that the policy wants.
// Usage: node drive.mjs v1|v2-legacy|v2-modern FOLDER-OF-MODULES COMMAND...
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [kind, modules, command, ...args] = process.argv.slice(2);
const find = createRequire(modules + '/');
const load = name => import(pathToFileURL(find.resolve(name)).href);
const seen = { asked: [] };
const yes = request => {
    seen.asked.push(request.params.message);
    return { action: 'accept', content: { approve: true } };
};

async function open() {
    const about = { name: 'drive', version: '1' };
    const options = { capabilities: { elicitation: {} } };
    const transport = { command, args, env: process.env };
    if (kind === 'v1') {
        const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
        const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
        const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');
        const client = new Client(about, options);
        client.setRequestHandler(ElicitRequestSchema, async request => yes(request));
        await client.connect(new StdioClientTransport(transport));
        return client;
    }
    const { Client } = await load('@modelcontextprotocol/client');
    const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
    const client = new Client(about, kind === 'v2-modern' ? { ...options, versionNegotiation: { mode: 'auto' } } : options);
    client.setRequestHandler('elicitation/create', async request => yes(request));
    await client.connect(new StdioClientTransport(transport));
    return client;
}

const client = await open();
const tool = async (name, more) => (await client.callTool({ name, arguments: more })).structuredContent;
seen.tools = (await client.listTools()).tools.map(t => t.name);
const session_id = (await tool('session', { action: 'new', workspace: 'official' })).session_id;
seen.wrote = (await tool('write_file', { session_id, path: 'a', text: 'first' })).status;
seen.snapshot = (await tool('snapshot', { session_id, action: 'create', name: 'begin' + kind })).status;
seen.ran = (await tool('execute_code', { session_id, code: "x = 6 * 7\nopen('a', 'w').write('second')\nprint(x)" })).stdout;
const fork = (await tool('session', { action: 'fork', session_id })).session_id;
seen.forked = (await tool('execute_code', { session_id: fork, code: 'print(x + 1)' })).stdout;
seen.read = (await tool('read_file', { session_id, path: 'a' })).text;
await tool('snapshot', { session_id, action: 'restore', snapshot: 'begin' + kind });
seen.restored = (await tool('read_file', { session_id, path: 'a' })).text;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
