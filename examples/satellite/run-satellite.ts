import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SatelliteClient, type SatelliteEvent } from 'toolwright/satellite';
import type { CommandLine } from './command-line.js';
import { UserFault } from './user-fault.js';
import { discoverWeatherTools } from './weather/discover-weather-tools.js';

/** Asks the server, executes the calls that it requests, and prints its answer. */
export async function runSatellite({ url, dataFolder, resume, question }: CommandLine): Promise<void> {
  const tools = discoverWeatherTools(process.env.STATION_URL || undefined);
  const token = process.env.SATELLITE_TOKEN || undefined;
  // For up to a minute or two: the server may be restarting.
  const client = new SatelliteClient({ url, tools, token, maxRetries: 20 });
  const file = join(dataFolder, 'conversation.txt');
  if (resume && !existsSync(file)) throw new UserFault('there is no conversation to go on with');
  const conversationId = resume ? readFileSync(file, 'utf8') : randomUUID();
  mkdirSync(dataFolder, { recursive: true });
  // Stored before it is sent: if this program is killed, the next one continues from here.
  writeFileSync(file, conversationId);
  const outcome = resume
    ? await client.resume(conversationId, { onEvent: show })
    : await client.send(question, { conversationId, onEvent: show });
  if (outcome.status !== 'completed') throw new UserFault(outcome.error.message);
  process.stdout.write(`${outcome.content}\n`);
}

function show(event: SatelliteEvent): void {
  if (event.type === 'call-start') say(`→ ${event.tool} ${JSON.stringify(event.arguments)}`);
  if (event.type === 'call-end')
    say(`${event.result.isError ? '✗' : '✓'} ${event.tool}: ${event.result.forLLM}`);
  if (event.type === 'retry') say(`${event.error.message}; trying again`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
