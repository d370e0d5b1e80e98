import { failedResult } from '../call/result-text.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { Answer, PendingCall } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Usage } from '../contract/llm-provider.js';
import type { ConversationView } from '../conversation/conversation-view.js';
import type { Conversations } from '../conversation/conversations.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord } from '../kernel/json.js';
import { visibleLine } from '../kernel/visible-text.js';
import { isBudgetQuestion } from '../loop/budget-question.js';
import { costOf, inUnits, PRICES, priceOf } from '../loop/prices.js';
import type { JournaledFileSystem } from '../toolbox/files/index.js';
import type { Permissions } from '../toolbox/permissions/index.js';
import type { AgentSessions } from './agent-sessions.js';
import type { ChatPrinter } from './chat-printer.js';
import type { CommandSurroundings } from './command.js';
import { askAll, type TerminalLines } from './terminal-questions.js';

/** What somebody on a terminal talks to. */
interface AgentTalkParts {
  readonly id: string;
  readonly model: string;
  readonly conversations: Conversations;
  readonly registry: ToolRegistry;
  readonly permissions: Permissions;
  readonly files: JournaledFileSystem;
  readonly surroundings: CommandSurroundings;
  readonly printer: ChatPrinter;
  readonly lines: TerminalLines;
  /** Whether somebody is there to answer; otherwise every line is a prompt, and what is asked is refused. */
  readonly isAnswered: boolean;
  /** Where it is noted what was said first, and when something was said last. */
  readonly sessions: AgentSessions;
  readonly folder: string;
}

/** Lines in, text out: prompts, answers and commands, over a conversation that a store keeps. */
export class AgentTalk {
  readonly #parts: AgentTalkParts;
  readonly #leaving = new AbortController();
  /** What was spent so far, and by how many turns. */
  readonly #spent = { inputTokens: 0, outputTokens: 0, turns: 0, calls: 0 };
  #cost: number | undefined = 0;
  /** Number of the last event that was shown. */
  #shown = 0;
  #isShowing = true;
  #whenShown: () => void = () => {};
  /** The end of the last turn. */
  #end: JsonObject | undefined;
  #lastStatus = 'completed';
  #isInTurn = false;
  /** Calls that somebody was asked about. */
  readonly #asked = new Set<unknown>();

  constructor(parts: AgentTalkParts) {
    this.#parts = parts;
  }

  /** Talks until there is nothing more to be said; gives the exit code. */
  async talk(): Promise<number> {
    const { lines, surroundings, id } = this.#parts;
    const unfollow = lines.onInterrupt(() => this.#interrupt());
    surroundings.error(
      `toolwright: session ${id}; /help lists the commands, /exit or end of input ends; Ctrl-C aborts a turn\n`,
    );
    const showing = this.#showAll();
    try {
      await this.#goOn();
      for (;;) {
        const line = (await lines.ask('> '))?.trim();
        if (line === undefined || line === '/exit') break;
        if (line.startsWith('/')) await this.#command(line);
        else if (line !== '') await this.#prompt(line);
      }
      return this.#lastStatus === 'completed' ? 0 : 1;
    } finally {
      unfollow();
      lines.close();
      this.#leaving.abort();
      await showing;
    }
  }

  /** Of a turn, the turn; otherwise the command. */
  #interrupt(): void {
    const { conversations, lines, printer, id } = this.#parts;
    if (this.#isInTurn) conversations.abort(id).catch((error: unknown) => printer.fault(error));
    else lines.close();
  }

  /** Shows what happens, from where the conversation stood when it was opened. */
  async #showAll(): Promise<void> {
    const { conversations, id, printer, lines } = this.#parts;
    const before = (await conversations.snapshot(id))?.lastEvent ?? 0;
    try {
      for await (const { number, event } of conversations.events(id, { signal: this.#leaving.signal })) {
        this.#count(event);
        if (number > before) {
          // What was asked about was shown, and begins again after the answer.
          if (event.type !== 'call-start' || !this.#asked.has(event.callId)) printer.show(event);
          if (event.type === 'call-end') this.#showForUser(event);
          if (!this.#isInTurn) lines.askAgain();
        }
        this.#shown = number;
        this.#whenShown();
      }
    } catch (error) {
      if (!this.#leaving.signal.aborted) printer.fault(error);
    } finally {
      // Nobody waits for what is not shown any more.
      this.#isShowing = false;
      this.#whenShown();
    }
  }

  /** What a tool has to say to the user; a difference that was shown with the question is known. */
  #showForUser({ callId, result }: JsonObject): void {
    const { forUser, silent } = Object(result) as { readonly forUser?: unknown; readonly silent?: unknown };
    if (typeof forUser !== 'string' || forUser === '' || silent === true) return;
    const { printer } = this.#parts;
    if (!/^@@ /m.test(forUser)) printer.show({ type: 'user-message', text: forUser });
    else if (!this.#asked.has(callId)) printer.describe(forUser);
  }

  #count(event: JsonObject): void {
    if (event.type === 'call-end' && !isBudgetQuestion(event.callId, event.tool)) this.#spent.calls += 1;
    if (event.type !== 'turn-end') return;
    this.#end = event;
    this.#spent.turns += 1;
    const usage = (isRecord(event.usage) ? event.usage : {}) as Partial<Usage>;
    this.#spent.inputTokens += usage.inputTokens ?? 0;
    this.#spent.outputTokens += usage.outputTokens ?? 0;
    try {
      const cost = costOf(priceOf(PRICES, this.#parts.model), usage);
      if (this.#cost !== undefined) this.#cost += inUnits(cost);
    } catch {
      this.#cost = undefined;
    }
  }

  /** A turn of before, which waits or was cut off. */
  async #goOn(): Promise<void> {
    const view = await this.#parts.conversations.snapshot(this.#parts.id);
    if (view === undefined) return;
    const said = view.messages.filter(({ role }) => role === 'user').length;
    this.#parts.surroundings.error(`toolwright: ${said} turns so far\n`);
    if (view.status !== 'idle') await this.#turn(async () => {});
  }

  async #prompt(text: string): Promise<void> {
    const { conversations, id, sessions, folder } = this.#parts;
    const known = sessions.read(id);
    const told = (known?.undone ?? []).map((about) => `[The user has taken back: ${about}]\n`).join('');
    await this.#turn(async () => {
      await conversations.prompt(id, told + text);
      sessions.note({ id, folder, title: known?.title || text.slice(0, 60), undone: [] });
    });
  }

  /** From its beginning until nothing waits and nothing runs. */
  async #turn(begin: () => Promise<void>): Promise<void> {
    const { printer } = this.#parts;
    this.#isInTurn = true;
    this.#end = undefined;
    try {
      await begin();
      let view = await this.#settled();
      while (view?.status === 'suspended') {
        await this.#answer(view);
        view = await this.#settled();
      }
      const { status = 'completed', error } = this.#ended();
      this.#lastStatus = String(status);
      const message = isRecord(error) ? { error: { message: String(error.message) } } : {};
      printer.end({ status: this.#lastStatus, ...message });
    } catch (error) {
      this.#lastStatus = 'failed';
      printer.fault(error);
    } finally {
      this.#isInTurn = false;
    }
  }

  /** How it stands when it is idle or waits, and all of it was shown. */
  async #settled(): Promise<ConversationView | undefined> {
    const view = await this.#parts.conversations.idle(this.#parts.id);
    while (this.#isShowing && this.#shown < (view?.lastEvent ?? 0))
      await new Promise<void>((resolve) => {
        this.#whenShown = resolve;
      });
    return view;
  }

  #ended(): JsonObject {
    return this.#end ?? {};
  }

  /** Answers what is waited for; where nobody does, it is refused. */
  async #answer({ pending }: ConversationView): Promise<void> {
    const { conversations, id, lines, printer, surroundings, isAnswered } = this.#parts;
    for (const { callId } of pending) this.#asked.add(callId);
    const leaving = new AbortController();
    const answers = isAnswered
      ? await askAll(pending, {
          ask: (question) => lines.ask(question, this.#untilAborted(leaving.signal)),
          printer,
          surroundings,
          scopeNames: {
            conversation: '[a]lways in this session',
            user: 'always for this [u]ser in this folder',
          },
        }).finally(() => leaving.abort())
      : undefined;
    if (answers === undefined) {
      if (!isAnswered) for (const one of pending) printer.wait(one);
      const view = await conversations.snapshot(id);
      // It was aborted meanwhile.
      if (view?.status !== 'suspended') return;
      await conversations.answer(id, pending.map(unanswered));
      return;
    }
    try {
      await conversations.answer(id, answers);
    } catch (error) {
      // What was written does not fit; it is asked again.
      printer.fault(error);
    }
  }

  /** When the turn waits no more, because it was aborted. */
  async #untilAborted(signal: AbortSignal): Promise<undefined> {
    const { conversations, id } = this.#parts;
    const after = this.#shown;
    try {
      for await (const { event } of conversations.events(id, { after, signal }))
        if (event.type === 'turn-end') return undefined;
    } catch {
      // It was answered.
    }
    return undefined;
  }

  async #command(line: string): Promise<void> {
    const [name = '', ...words] = line.slice(1).split(/\s+/);
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    try {
      if (command === undefined) this.#tell(`there is no /${name}; /help lists the commands`);
      else await this[command.method](words);
    } catch (error) {
      this.#tell(errorMessage(error));
    }
  }

  #tell(text: string): void {
    this.#parts.surroundings.error(`toolwright: ${visibleLine(text)}\n`);
  }

  /** Lists the commands. */
  help(): void {
    for (const [name, { about }] of Object.entries(COMMANDS))
      this.#parts.surroundings.out(`/${name.padEnd(12)} ${about}\n`);
    this.#parts.surroundings.out(`/${'exit'.padEnd(12)} ends; the session can be continued\n`);
  }

  /** Lists the tools. */
  tools(): void {
    const { registry, surroundings } = this.#parts;
    for (const summary of registry.getSummaries()) surroundings.out(`${visibleLine(summary)}\n`);
  }

  /** What the session has spent so far. */
  cost(): void {
    const { turns, calls, inputTokens, outputTokens } = this.#spent;
    const { model, surroundings } = this.#parts;
    const cost = this.#cost === undefined ? `no price is known for ${model}` : `$${this.#cost.toFixed(4)}`;
    surroundings.out(
      `${turns} turns, ${calls} calls, ${inputTokens} tokens in, ${outputTokens} out: ${visibleLine(cost)}\n`,
    );
  }

  /** Takes the last change of files back. */
  async undo([word]: readonly string[]): Promise<void> {
    const { files, surroundings } = this.#parts;
    if (word === 'list') {
      const changes = files.changes();
      if (changes.length === 0) surroundings.out('nothing was changed\n');
      for (const { at, about } of changes) surroundings.out(`${at} ${visibleLine(about)}\n`);
      return;
    }
    if (word === 'skip') {
      const left = files.forget();
      this.#tell(left === undefined ? 'nothing was changed' : `left as it is: ${left.about}`);
      return;
    }
    if (word !== undefined) {
      this.#tell('/undo, /undo list or /undo skip');
      return;
    }
    let undone: Awaited<ReturnType<JournaledFileSystem['undo']>>;
    try {
      undone = await files.undo();
    } catch (error) {
      const newest = files.changes().at(-1)?.about ?? '';
      this.#tell(`${newest}: ${errorMessage(error)} /undo skip leaves it as it is.`);
      return;
    }
    if (undone === undefined) {
      this.#tell('nothing was changed that could be undone');
      return;
    }
    const about = `${undone.about} (${undone.paths.join(', ')})`;
    const { id, folder, sessions } = this.#parts;
    const known = sessions.read(id);
    sessions.note({ id, folder, title: known?.title ?? '', undone: [...(known?.undone ?? []), about] });
    surroundings.out(`undone: ${visibleLine(about)}\n`);
  }

  /** The yeses that stand, and how they are taken back. */
  yes([word, id]: readonly string[]): void {
    const { permissions, surroundings } = this.#parts;
    if (word === 'revoke') {
      const isGone = id !== undefined && permissions.revoke(id);
      this.#tell(isGone ? `${id} stands no more` : '/yes revoke <id>: one of those that /yes lists');
      return;
    }
    const yeses = permissions.remembered();
    if (yeses.length === 0) surroundings.out('no yes stands\n');
    for (const { id: name, rule, scope } of yeses) {
      const { decision: _, ...about } = rule;
      const whose = 'session' in scope ? `in session ${scope.session}` : `for ${scope.user}`;
      surroundings.out(`${name} ${visibleLine(`${JSON.stringify(about)} ${whose}`)}\n`);
    }
  }
}

/** What is told where nobody answers: a refusal, but of a call that may have been done, that nobody knows it. */
function unanswered({ id, kind, tool, message }: PendingCall): Answer {
  if (kind !== 'outcome') return { id, approved: false, reason: 'nobody is there who could answer' };
  const known = message ?? `The process died while '${tool}' ran. It is not known whether it was done.`;
  return { id, outcome: 'done', result: failedResult('OutcomeUnknown', known).toJSON() };
}

const COMMANDS: Readonly<
  Record<string, { readonly about: string; readonly method: 'help' | 'tools' | 'cost' | 'undo' | 'yes' }>
> = {
  help: { about: 'lists the commands', method: 'help' },
  tools: { about: 'lists the tools', method: 'tools' },
  cost: { about: 'what the session has spent', method: 'cost' },
  undo: { about: 'takes the last change of files back; /undo list, /undo skip', method: 'undo' },
  yes: { about: 'lists the yeses that stand; /yes revoke <id>', method: 'yes' },
};
