import type { JobEngine } from '../../core/contract/job-engine.js';
import type { LogFields, Logger } from '../../core/contract/ports.js';
import { ProviderError } from '../../core/errors/provider-error.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage, isClientError } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { SafeLog } from './log.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

/** What failed, why, and which one of its kind it was. */
interface LoggedFailure {
  /** `Run failed`. */
  readonly what: string;
  readonly error: unknown;
  /** Ids, as fields of the entry: they do not make another cause. */
  readonly at?: LogFields;
  /** What hides secrets; default: known ones. */
  readonly redact?: Redaction | undefined;
}

/**
 * Logs at `error` why something failed, to the given logger or else to the console: once per cause and minute, so that
 * a provider that is down does not fill the log. Secrets in the text are hidden. An abort, and an error by which a
 * client is refused, as NestJS has them, is logged at `debug`.
 */
export function logFailure(logger: Logger | undefined, failure: LoggedFailure): void {
  try {
    log(logger ?? CONSOLE, failure);
  } catch {
    // An error that throws when it is looked at, or a frozen one of another kind.
    new SafeLog(logger ?? CONSOLE).error(`${failure.what}: its error cannot be shown`, failure.at ?? {});
  }
}

function log(receiver: Logger, { what, error, at = {}, redact = KNOWN_SECRETS }: LoggedFailure): void {
  const reason = redact.mask(errorMessage(error), LONGEST_TEXT);
  const text = `${what}: ${visibleLine(reason)}`;
  const causes = causesOf(error);
  const safe = new SafeLog(receiver, redact);
  // Nothing has failed: another process goes on with it, or somebody was refused or has stopped it.
  const { name } = ToolwrightError.is(error) ? error : {};
  const isRefusal = name === 'RunAborted' || name === 'TaskCancelled' || causes.some(isClientError);
  if (name === 'RunClaimed' || isRefusal) {
    safe[isRefusal ? 'debug' : 'warn'](text, at);
    return;
  }
  const { status } = causes.find(ProviderError.is) ?? {};
  const repeats = repeatsBefore(receiver, `${causeOf(text)} ${status}`);
  if (repeats === undefined) return;
  // The error of somebody's code, without what its library has put beside it, such as the body of the request: one of a
  // provider or of the framework says all in its message.
  const isOwn = (cause: unknown): cause is Error => cause instanceof Error && !ToolwrightError.is(cause);
  const origin = causes.find((cause) => ProviderError.is(cause) || isOwn(cause));
  const fields = {
    ...at,
    repeats: repeats === 0 ? undefined : repeats,
    error: undefined as Error | undefined,
  };
  if (isOwn(origin) && !ProviderError.is(origin)) {
    const { name, message, stack } = origin;
    fields.error = Object.assign(new Error(message), { name, stack });
  }
  safe.error(text, withoutUndefined(fields));
}

const LONGEST_TEXT = 1_000;

/**
 * Logs at `warn` that something works again that failed, if its failure was logged: the next one is logged again,
 * however soon it comes.
 */
function logRecovery(
  logger: Logger | undefined,
  { what, now }: { readonly what: string; readonly now: string },
): void {
  const receiver = logger ?? CONSOLE;
  const causes = known.get(receiver);
  const ended = [...(causes?.keys() ?? [])].filter((cause) => cause.startsWith(causeOf(what)));
  for (const cause of ended) causes?.delete(cause);
  if (ended.length > 0) new SafeLog(receiver).warn(now, {});
}

/** Used without a logger. */
export const CONSOLE: Logger = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => console.warn(...lineOf(message, fields)),
  error: (message, fields) => console.error(...lineOf(message, fields)),
};

function lineOf(message: string, fields: LogFields = {}): readonly unknown[] {
  const line = `toolwright: ${message}`;
  return Object.keys(fields).length === 0 ? [line] : [line, fields];
}

/** A cause that was logged, and how often it has come since. */
interface KnownCause {
  readonly loggedAt: number;
  repeats: number;
}

const AGAIN_AFTER_MS = 60_000;
const MOST_CAUSES = 200;

/** By logger: each receives every cause. */
const known = new WeakMap<Logger, Map<string, KnownCause>>();

/** How often a cause came since it was logged; `undefined` where that is less than a minute ago. */
function repeatsBefore(logger: Logger, cause: string): number | undefined {
  const causes = known.get(logger) ?? new Map<string, KnownCause>();
  known.set(logger, causes);
  const before = causes.get(cause);
  const now = Date.now();
  if (before !== undefined && Math.abs(now - before.loggedAt) < AGAIN_AFTER_MS) {
    before.repeats += 1;
    return undefined;
  }
  // At the end again, so that the first of the map is the oldest.
  causes.delete(cause);
  causes.set(cause, { loggedAt: now, repeats: 0 });
  forgetOldest(causes, MOST_CAUSES);
  return before?.repeats ?? 0;
}

/** Ids and amounts in the text of a provider, which differ each time; statuses, versions and ports stay. */
const VARYING = /(?<![:\w])(?=\w*\d)\w{4,}/g;

function causeOf(text: string): string {
  return text.replace(VARYING, '#');
}

const MOST_CAUSED = 10;

/** An error and those that caused it; a chain may be a ring. */
function causesOf(error: unknown): readonly unknown[] {
  const causes: unknown[] = [error];
  for (let last = error; last instanceof Error && causes.length < MOST_CAUSED; causes.push(last))
    last = last.cause;
  return causes;
}

type NamedEngine = Pick<JobEngine, 'name'>;

/** Logs that an engine does not answer: in the same words whatever part of the process noticed it, so once. */
export function logSilence(
  engine: NamedEngine,
  { logger, error }: { readonly logger: Logger | undefined; readonly error: unknown },
): void {
  logFailure(logger, { what: silenceOf(engine), error: errorMessage(error) });
}

/** Logs that an engine answers again. */
export function logAnswer(engine: NamedEngine, logger: Logger | undefined): void {
  const { name = 'The engine' } = engine;
  logRecovery(logger, { what: silenceOf(engine), now: `${name} answers again` });
}

function silenceOf({ name = 'The engine' }: NamedEngine): string {
  return `${name} does not answer, and background work waits until it does`;
}
