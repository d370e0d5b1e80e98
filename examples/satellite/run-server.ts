import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  createAssistantHandler,
  SqliteConversationStore,
  toNodeHandler,
  toolRequestPrompt,
} from 'toolwright/satellite';
import { createLogger } from 'toolwright/winston';
import { chooseModel } from './choose-model.js';
import type { CommandLine } from './command-line.js';
import { discoverWeatherTools } from './weather/discover-weather-tools.js';

/** Serves until a signal arrives. Answers are in the file, also after the process was killed. */
export async function runServer({ dataFolder, port }: CommandLine): Promise<void> {
  const tools = discoverWeatherTools().toProviderDefs();
  mkdirSync(dataFolder, { recursive: true });
  using store = new SqliteConversationStore({ path: join(dataFolder, 'conversations.db') });
  const token = process.env.SATELLITE_TOKEN;
  const handler = createAssistantHandler({
    ...(await chooseModel(process.env, tools)),
    systemPrompt: `Answer briefly, as plain text.\n\n${toolRequestPrompt(tools)}`,
    store,
    logger: createLogger({ level: 'warn' }),
    ...(token ? { token } : {}),
  });
  const server = createServer(toNodeHandler(handler)).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: own } = server.address() as AddressInfo;
  process.stdout.write(`listening on http://127.0.0.1:${own}\n`);
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  // `disconnect`: the parent process has ended, for whatever reason.
  process.once('SIGINT', stop).once('SIGTERM', stop).once('disconnect', stop);
  process.channel?.unref();
  await once(server, 'close');
}
