import { visibleText } from '../../../core/kernel/visible-text.js';
import { Outcome } from './call-result.js';
import { Icon, type IconName } from './icon.js';
import { Markdown } from './markdown.js';
import { duration, Fault, Json, Pairs, Status, statusKind, tokensOf } from './parts.js';
import { costText, type Run, type Span } from './run.js';

/** An entry with its position in the run, in milliseconds since the start. */
interface Bar {
  readonly span: Span;
  readonly from: number;
  readonly ms: number;
}

/** Positions by time; entries of stored runs follow each other. */
function barsOf({ spans, begin }: Run): readonly Bar[] {
  const now = Date.now();
  let offset = 0;
  return spans.map((span) => {
    const from = span.begin === undefined ? offset : span.begin - begin;
    const known = 'ms' in span ? (span.ms ?? 0) : 0;
    const ms = span.begin === undefined ? known : (span.end ?? now) - span.begin;
    offset = from + ms;
    return { span, from, ms };
  });
}

/** The longest width of a wait, relative to the time in which anything ran. */
const LONGEST_WAIT = 0.25;

/**
 * Maps times to positions from 0 to 1. Long waits are shortened, so that the other entries stay visible, also entries
 * that took less than a millisecond.
 */
function scaleOf(bars: readonly Bar[]): (time: number) => number {
  const busy = bars
    .filter(({ span }) => span.kind !== 'wait')
    .map(({ from, ms }) => ({ from, ms: Math.max(1, ms) }))
    .sort((one, other) => one.from - other.from);
  const end = Math.max(1, ...[...busy, ...bars].map(({ from, ms }) => from + ms));
  const gaps: { readonly from: number; readonly ms: number }[] = [];
  let until = 0;
  for (const { from, ms } of busy) {
    if (from > until) gaps.push({ from: until, ms: from - until });
    until = Math.max(until, from + ms);
  }
  if (end > until) gaps.push({ from: until, ms: end - until });
  const active = end - gaps.reduce((sum, { ms }) => sum + ms, 0);
  const most = Math.max(1, active * LONGEST_WAIT);
  const place = (time: number) =>
    gaps.reduce((at, { from, ms }) => {
      const within = Math.min(Math.max(0, time - from), ms);
      return at - within + within * Math.min(1, most / ms);
    }, time);
  return (time) => place(time) / place(end);
}

const ICONS: Readonly<Record<Span['kind'], IconName>> = { request: 'model', call: 'tools', wait: 'pending' };

interface TimelineProps {
  readonly run: Run;
  readonly chosen: number;
  onChoose(index: number): void;
}

/** The requests, calls and waits of a run, in the order of their start. */
export function Timeline({ run, chosen, onChoose }: TimelineProps) {
  const bars = barsOf(run);
  if (bars.length === 0) return <p class="faint">Nothing yet.</p>;
  const scale = scaleOf(bars);
  return (
    <ol class="waterfall" aria-label="Timeline">
      {bars.map(({ span, from, ms }, index) => (
        <li key={index}>
          <button type="button" aria-pressed={index === chosen} onClick={() => onChoose(index)}>
            <span class={`kind-${span.kind} ${endedWell(span) ? '' : 'bad'}`}>
              <Icon name={ICONS[span.kind]} />
            </span>
            <span>{labelOf(span)}</span>
            <span class="faint small">{timeOf(span, ms)}</span>
            <span class="track" aria-hidden="true">
              <span
                class={`bar bar-${span.kind} ${endedWell(span) ? '' : 'bad'}`}
                style={{
                  left: `${scale(from) * 100}%`,
                  width: `${(scale(from + ms) - scale(from)) * 100}%`,
                }}
              />
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function timeOf(span: Span, ms: number): string {
  if (span.begin === undefined) return 'ms' in span ? duration(ms) : '';
  return span.end === undefined ? 'running' : duration(ms);
}

function endedWell(span: Span): boolean {
  return span.kind !== 'call' || span.status === undefined || statusKind(span.status) !== 'bad';
}

export function labelOf(span: Span): string {
  if (span.kind === 'request') return `request ${span.iteration}`;
  const tool = visibleText(span.tool);
  if (span.kind === 'wait') return `waiting for an answer: ${tool}`;
  return endedWell(span) ? tool : `${tool} (${span.status?.replaceAll('_', ' ')})`;
}

/** The details of an entry. */
export function Entry({ run, span }: { run: Run; span: Span }) {
  const { begin, end } = span;
  return (
    <section class="card entry" aria-label="Selected entry" key={labelOf(span)}>
      <h2 class="with-icon">
        <span class={`kind-${span.kind} ${endedWell(span) ? '' : 'bad'}`}>
          <Icon name={ICONS[span.kind]} />
        </span>
        {labelOf(span)}
      </h2>
      {begin !== undefined && (
        <p class="faint small">
          {duration(begin - run.begin)} after the start
          {end !== undefined && `, took ${duration(end - begin)}`}
        </p>
      )}
      {span.kind === 'request' && <Request span={span} isEstimate={run.isEstimate} />}
      {span.kind === 'call' && <Call span={span} />}
      {span.kind === 'wait' && <Wait span={span} />}
    </section>
  );
}

type Of<Kind extends Span['kind']> = Span & { readonly kind: Kind };

function Request({ span, isEstimate }: { span: Of<'request'>; isEstimate: boolean | undefined }) {
  const { usage, cost, finishReason, retries = [], text } = span;
  const { inputTokens, outputTokens, totalTokens: _, ...parts } = usage ?? {};
  const figures = [
    ...(usage === undefined ? [] : [['Tokens', `${inputTokens} in, ${outputTokens} out`] as const]),
    ...Object.entries(parts).map(([name, tokens]) => [wordsOf(name), String(tokens)] as const),
    ...(cost === undefined ? [] : [['Cost', costText(cost, isEstimate ?? true)] as const]),
    ...(finishReason === undefined ? [] : [['Ended with', finishReason.replaceAll('_', ' ')] as const]),
  ];
  return (
    <>
      <Figures figures={figures} />
      {retries.map((retry, index) => (
        <Fault key={index} message={`Retried after: ${retry}`} />
      ))}
      {text !== '' && (
        <>
          <h3>Text</h3>
          <Markdown text={text} />
        </>
      )}
    </>
  );
}

/** `cachedInputTokens` becomes "Cached input tokens". */
function wordsOf(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function Figures({ figures }: { figures: readonly (readonly [string, string])[] }) {
  return (
    <dl class="figures">
      {figures.map(([name, figure]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{visibleText(figure)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Call({ span }: { span: Of<'call'> }) {
  const { status, key, progress, forLLM } = span;
  return (
    <>
      <p class="turn-end">
        {status !== undefined && <Status value={status} />}
        {forLLM !== undefined && <span>about {tokensOf(forLLM)} tokens for the model</span>}
        {key !== undefined && <a href={`#/calls/${key}`}>open the call</a>}
      </p>
      {progress !== undefined && (
        <>
          <h3>Progress</h3>
          <Json label="Progress" value={progress} />
        </>
      )}
      <Outcome call={span} />
    </>
  );
}

function Wait({ span }: { span: Of<'wait'> }) {
  const { pending = [], end, arguments: args } = span;
  return (
    <>
      {end === undefined && (
        <p>
          It is waiting: <a href="#/pending">answer it</a>
        </p>
      )}
      {args !== undefined && <Pairs label="Arguments" value={args} />}
      {pending.length > 0 && (
        <>
          <h3>Question</h3>
          <Json label="Question" value={pending} />
        </>
      )}
    </>
  );
}
