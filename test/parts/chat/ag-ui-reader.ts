import { HttpAgent, verifyEvents } from '@ag-ui/client';
import type { BaseEvent, Interrupt, ResumeEntry, RunAgentInput } from '@ag-ui/core';
import { EventSchemas } from '@ag-ui/core/schemas';
import { jest } from '@jest/globals';
import { from } from 'rxjs';
import type { ChatHandler } from 'toolwright/chat';

/** A user with the AG-UI client; every stream that it reads is verified. */
export class AgUiUser {
  readonly agent: ReadingAgent;
  /** Errors that the AG-UI verifiers reported. */
  readonly violations: unknown[] = [];
  /** The events of each run. */
  readonly runs: BaseEvent[][] = [];

  constructor({ fetch }: Pick<ChatHandler, 'fetch'>, { thread = 't1', user = 'u1' } = {}) {
    const read = async (url: string, init: RequestInit): Promise<Response> => {
      const response = await fetch(new Request(url, init));
      if (!response.ok) return response;
      const text = await response.text();
      await this.#judge(text);
      return new Response(text, { headers: response.headers });
    };
    this.agent = new ReadingAgent({
      url: 'http://localhost/api/agent',
      threadId: thread,
      headers: { 'x-user': user },
      fetch: read,
    });
  }

  get lastRun(): readonly BaseEvent[] {
    return this.runs.at(-1) ?? [];
  }

  get interrupts(): readonly Interrupt[] {
    return this.agent.pendingInterrupts;
  }

  async say(content: string, id: string = crypto.randomUUID()): Promise<readonly BaseEvent[]> {
    this.agent.addMessage({ id, role: 'user', content });
    return this.run();
  }

  async run(
    more: { readonly resume?: ResumeEntry[]; readonly runId?: string } = {},
  ): Promise<readonly BaseEvent[]> {
    const warn = jest
      .spyOn(console, 'warn')
      .mockImplementation((...words) => void this.violations.push(words));
    try {
      await this.agent.runAgent(more);
    } finally {
      warn.mockRestore();
    }
    return this.lastRun;
  }

  /** Like a page that was reloaded. */
  async connect(): Promise<readonly BaseEvent[]> {
    await this.agent.connectAgent();
    return this.lastRun;
  }

  async #judge(text: string): Promise<void> {
    const events = text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice(6)) as BaseEvent);
    this.runs.push(events);
    for (const event of events) {
      const checked = EventSchemas.safeParse(event);
      if (!checked.success) this.violations.push({ event, issues: checked.error.issues });
    }
    // The client has its own copy of rxjs.
    const verified = verifyEvents(false)(from(events) as never);
    await new Promise<void>((resolve) => {
      const error = (found: unknown) => resolve(void this.violations.push(found));
      verified.subscribe({ error, complete: resolve });
    });
    const last = events.at(-1)?.type;
    if (last !== 'RUN_FINISHED' && last !== 'RUN_ERROR') this.violations.push(`the run ends with ${last}`);
  }
}

/** An `HttpAgent` that can connect: a GET returns the history and the rest of the open run. */
class ReadingAgent extends HttpAgent {
  protected override connect(input: RunAgentInput): ReturnType<HttpAgent['run']> {
    const plain = this.fetch;
    const { threadId, runId } = input;
    const url = `${this.url}?id=${encodeURIComponent(threadId)}&runId=${encodeURIComponent(runId)}`;
    const getter = new HttpAgent({
      url,
      headers: this.headers,
      fetch: (address, init) => {
        const { body: _, ...rest } = init;
        return plain(address, { ...rest, method: 'GET' });
      },
    });
    return getter.run(input);
  }
}
