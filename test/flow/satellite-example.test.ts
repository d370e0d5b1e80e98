import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runProgram } from '../../examples/satellite/run-program.js';
import { LoopbackServer } from '../parts/providers/loopback-server.js';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';
import { ProgramOutput } from '../processes/program-output.js';
import type { NodeRun } from '../processes/run-node.js';

// Runs the built examples/satellite in processes, except for tests of its command line.

const QUESTION = 'What is the weather in Lisbon?';
const ANSWER = /Lisbon is 17°C and clear\.\n$/;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'satellite-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function start(args: readonly string[], environment: Readonly<Record<string, string>> = {}): NodeProcess {
  const program = new NodeProcess([builtFile('dist/examples/satellite/main.js'), ...args], {
    folder,
    environment,
  });
  program.endInput();
  return program;
}

async function runHere(args: readonly string[]): Promise<NodeRun> {
  const output = new ProgramOutput();
  const [stdout, stderr] = [output.writable('stdout'), output.writable('stderr')];
  const exitCode = await runProgram(args, { stdout, stderr });
  return { exitCode, stdout: output.stdout, stderr: output.stderr };
}

async function startServer(port = '0', environment: Readonly<Record<string, string>> = {}) {
  const server = start(['server', '--port', port], environment);
  const [, url = ''] = await server.waitFor(/^listening on (.+)\n/);
  return { server, url, port: new URL(url).port };
}

/** A weather station that replies only when told to. Until then, a tool runs and a request is pending. */
class SlowStation implements AsyncDisposable {
  readonly #waiting: ServerResponse[] = [];
  readonly #server: LoopbackServer;
  #asked = Promise.withResolvers<void>();

  private constructor(server: LoopbackServer) {
    this.#server = server;
  }

  static async open(): Promise<SlowStation> {
    const station: SlowStation = new SlowStation(
      await LoopbackServer.start((response) => {
        station.#waiting.push(response);
        station.#asked.resolve();
      }),
    );
    return station;
  }

  get url(): string {
    return this.#server.baseURL;
  }

  get readings(): number {
    return this.#server.requests.length;
  }

  /** Resolves when a reading was requested. */
  async asked(): Promise<void> {
    await this.#asked.promise;
    this.#asked = Promise.withResolvers<void>();
  }

  answer(): void {
    for (const response of this.#waiting.splice(0))
      response.setHeader('content-type', 'application/json').end('{"celsius":17,"sky":"clear"}');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]();
  }
}

describe('examples/satellite', () => {
  test('starts its own server if none is given', async () => {
    await using program = start([]);
    await program.ended();
    expect(program.stdout).toMatch(/Lisbon is 18°C and clear\.\n$/);
    expect(program.stderr).toContain('→ lookup_weather {"city":"Lisbon"}');
    expect(program.exitCode).toBe(0);
  });

  test.each([[['--help']], [['satellite', '-h']], [['server', '--help']]])(
    '%j shows the usage',
    async (args) => {
      const { exitCode, stdout } = await runHere(args);
      expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Usage: /)]);
    },
  );

  test('sends a refusal of a tool to the model and continues', async () => {
    await using program = start(['What is the weather in Atlantis?']);
    await program.ended();
    expect(program.stdout).toContain('no station in Atlantis');
    expect(program.exitCode).toBe(0);
  });

  test('refuses a satellite without the token of the server, with one line on stderr', async () => {
    const { server, url } = await startServer('0', { SATELLITE_TOKEN: 'secret' });
    await using _server = server;
    await using stranger = start(['satellite', '--url', url, QUESTION]);
    await stranger.ended();
    expect([stranger.exitCode, stranger.stderr]).toEqual([1, 'satellite: a bearer token is required\n']);
    await using friend = start(['satellite', '--url', url, QUESTION], { SATELLITE_TOKEN: 'secret' });
    await friend.ended();
    expect([friend.exitCode, friend.stdout]).toEqual([0, expect.stringContaining('18°C')]);
  });

  test.each([
    [['satellite'], 'there is no question'],
    [['server', '--port', 'x'], '--port must be 0 to 65535'],
    [['satellite', '--url', 'ftp://a', 'Hi'], '--url is not an http address: ftp://a'],
    [['server', 'Hi'], 'the server takes no question: Hi'],
    [['satellite', '--resume', 'Hi'], '--resume is for a satellite without a question'],
    [['--resume'], '--resume is for a satellite without a question'],
    [['--colour'], "Unknown option '--colour'"],
  ])('%j is refused with one line and exit code 2', async (args, problem) => {
    const { exitCode, stderr } = await runHere(args);
    expect([exitCode, stderr]).toEqual([2, `satellite: ${problem}; see --help\n`]);
  });
});

describe('examples/satellite, killed during a pending request', () => {
  test('leaves no server behind if it started its own', async () => {
    await using station = await SlowStation.open();
    await using program = start([QUESTION], { STATION_URL: station.url });
    await station.asked();
    // Waits until stderr is closed, which the server has inherited.
    await program.kill();
    expect(program.stdout).toBe('');
  });

  test('continues after a restart of the server; the satellite only retries', async () => {
    await using station = await SlowStation.open();
    const first = await startServer();
    await using satellite = start(['satellite', '--url', first.url, QUESTION], { STATION_URL: station.url });
    await station.asked();
    await first.server.kill();
    station.answer();
    await satellite.waitFor(/cannot be reached.*; trying again/);
    const second = await startServer(first.port);
    await using _second = second.server;
    await satellite.ended();
    expect(satellite.stdout).toMatch(ANSWER);
    expect([satellite.exitCode, station.readings]).toEqual([0, 1]);
  });

  test('runs the pending request in a new satellite, which gets the answer', async () => {
    await using station = await SlowStation.open();
    const { server, url } = await startServer();
    await using _server = server;
    await using first = start(['satellite', '--url', url, QUESTION], { STATION_URL: station.url });
    await station.asked();
    await first.kill();
    await using second = start(['satellite', '--url', url, '--resume'], { STATION_URL: station.url });
    await station.asked();
    station.answer();
    await second.ended();
    expect(second.stdout).toMatch(ANSWER);
    expect([second.exitCode, first.stdout]).toEqual([0, '']);
  });

  test('continues after a restart of both', async () => {
    await using station = await SlowStation.open();
    const first = await startServer();
    await using killed = start(['satellite', '--url', first.url, QUESTION], { STATION_URL: station.url });
    await station.asked();
    await Promise.all([first.server.kill(), killed.kill()]);
    const { server, url } = await startServer();
    await using _server = server;
    await using satellite = start(['satellite', '--url', url, '--resume'], { STATION_URL: station.url });
    await station.asked();
    station.answer();
    await satellite.ended();
    expect(satellite.stdout).toMatch(ANSWER);
  });
});
