import { useEffect, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { CallForm } from './call-form.js';
import { Fault, Heading, Json, Line, Text, useFieldId } from './parts.js';
import { post, useRemote } from './remote.js';
import type { Schema } from './schema.js';
import { SchemaTree } from './schema-tree.js';

interface ToolLine {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly method?: string;
  readonly tokens: number;
  readonly share: number;
  readonly marks: readonly string[];
}

interface ToolList {
  readonly tools: readonly ToolLine[];
  readonly breakpoints: readonly string[];
}

interface ToolCard extends ToolLine {
  readonly origins: readonly string[];
  readonly place?: { readonly file: string; readonly line: number };
  readonly parameters: Schema;
  readonly output?: unknown;
  readonly annotations?: unknown;
  readonly limits?: Readonly<Record<string, unknown>>;
  readonly surroundings: readonly { readonly kind: string; readonly name: string }[];
  readonly strict: StrictReport;
  readonly surfaces: readonly { readonly name: string; readonly sent?: unknown; readonly problem?: string }[];
}

interface StrictNote {
  readonly what: string;
  readonly places: readonly string[];
}

type StrictReport =
  | {
      readonly isStrict: true;
      readonly rewritten: readonly StrictNote[];
      readonly checked: readonly StrictNote[];
    }
  | { readonly isStrict: false; readonly reasons: readonly string[] };

/** The tools, and one of them. */
export function ToolsView({ name }: { name: string }) {
  const { answer, fault } = useRemote<ToolList>('tools', ['tools', 'held']);
  const [filter, setFilter] = useState('');
  const id = useFieldId();
  const words = filter.toLowerCase().split(/\s+/);
  const tools = (answer?.tools ?? []).filter((tool) =>
    words.every((word) =>
      `${tool.name} ${tool.description} ${tool.method ?? ''}`.toLowerCase().includes(word),
    ),
  );
  const total = (answer?.tools ?? []).reduce((sum, { tokens }) => sum + tokens, 0);
  return (
    <div class={name === '' ? 'split' : 'split chosen'}>
      <nav class="list" aria-label="Tools">
        <label for={id} class="hidden">
          Filter tools
        </label>
        <input
          id={id}
          type="search"
          data-filter
          placeholder="Filter tools ( / )"
          value={filter}
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
        <p class="faint" role="status">
          {tools.length} of {answer?.tools.length ?? 0} tools, about {total} tokens
        </p>
        <Fault message={fault} />
        <ul>
          {tools.map((tool) => (
            <li key={tool.name}>
              <a
                href={`#/tools/${encodeURIComponent(tool.name)}`}
                aria-current={tool.name === name ? 'page' : undefined}
              >
                <strong>{visibleText(tool.name)}</strong>
                {answer?.breakpoints.includes(tool.name) && <span class="status waiting">breakpoint</span>}
                <span class="faint">
                  <Line value={tool.description} />
                </span>
                <span class="faint small">
                  ~{tool.tokens} tokens, {Math.round(tool.share * 100)} %
                </span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <section class="detail">
        {name === '' ? (
          <Heading subtitle="Choose a tool: what models are sent of it, and a form that calls it.">
            Tools
          </Heading>
        ) : (
          <ToolView key={name} name={name} isHeld={answer?.breakpoints.includes(name) ?? false} />
        )}
      </section>
    </div>
  );
}

function ToolView({ name, isHeld }: { name: string; isHeld: boolean }) {
  const { answer: card, fault } = useRemote<ToolCard>(`tools/${encodeURIComponent(name)}`, ['tools']);
  return (
    <>
      <p class="back">
        <a href="#/tools">All tools</a>
      </p>
      <Heading subtitle={card?.title && <Line value={card.title} />}>{visibleText(name)}</Heading>
      <Fault message={fault} />
      {card && (
        <>
          <Text label="Description" value={card.description} />
          <Facts card={card} />
          <Breakpoint tool={name} isHeld={isHeld} />
          <h2>Call</h2>
          <CallForm tool={name} schema={card.parameters} />
          <h2>Schema</h2>
          <SchemaTree schema={card.parameters} root={card.parameters} />
          {card.output !== undefined && (
            <details>
              <summary>Output</summary>
              <Json label="Output schema" value={card.output} />
            </details>
          )}
          <h2>Strict form</h2>
          <Strict report={card.strict} />
          <h2>What is sent</h2>
          {card.surfaces.map((surface) => (
            <details key={surface.name}>
              <summary>{surface.name}</summary>
              {surface.problem === undefined ? (
                <Json label={`Sent to ${surface.name}`} value={surface.sent} />
              ) : (
                <p class="fault">{visibleText(surface.problem)}</p>
              )}
            </details>
          ))}
        </>
      )}
    </>
  );
}

/** Ticked at once; what the server says comes after it. */
function Breakpoint({ tool, isHeld }: { tool: string; isHeld: boolean }) {
  const [isOn, setOn] = useState(isHeld);
  useEffect(() => setOn(isHeld), [isHeld]);
  const change = (checked: boolean) => {
    setOn(checked);
    post(`breakpoints/${encodeURIComponent(tool)}`, { state: checked ? 'on' : 'off' }).catch(() =>
      setOn(!checked),
    );
  };
  return (
    <p>
      <label>
        <input
          type="checkbox"
          checked={isOn}
          onChange={({ currentTarget }) => change(currentTarget.checked)}
        />{' '}
        Breakpoint: hold every call until it is let go under Pending
      </label>
    </p>
  );
}

function Facts({ card }: { card: ToolCard }) {
  const { method, place, origins, tokens, share, marks, surroundings, limits } = card;
  const around = surroundings.map(({ kind, name }) => `${kind} ${name}`);
  const limited = Object.entries(limits ?? {}).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const facts: readonly (readonly [string, string])[] = [
    ['Method', method ?? 'none: a tool without a class'],
    ['Written in', place === undefined ? 'not known here' : `${place.file}:${place.line}`],
    ['Schema from', origins.join(', ')],
    ['Size', `about ${tokens} tokens, ${Math.round(share * 1000) / 10} % of all definitions`],
    ['Marks', marks.join(', ') || 'none'],
    ['Around each call', around.join(', ') || 'no guard, no policy and no hook'],
    ...(limited.length > 0 ? [['Limits', limited.join(', ')] as const] : []),
  ];
  return (
    <dl class="facts">
      {facts.map(([term, fact]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{visibleText(fact)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Strict({ report }: { report: StrictReport }) {
  if (!report.isStrict)
    return (
      <>
        <p>It has no strict form; providers are sent it as it is.</p>
        <ul>
          {report.reasons.map((reason) => (
            <li key={reason}>{visibleText(reason)}</li>
          ))}
        </ul>
      </>
    );
  const notes = [
    ...report.rewritten.map((note) => ({ ...note, how: 'rewritten' })),
    ...report.checked.map((note) => ({ ...note, how: 'checked at the call alone' })),
  ];
  if (notes.length === 0) return <p>It is strict as it is.</p>;
  return (
    <ul>
      {notes.map(({ what, places, how }) => (
        <li key={what}>
          {how}: {visibleText(what)}:{' '}
          <code>{visibleText(places.map((place) => place || 'the whole').join(', '))}</code>
        </li>
      ))}
    </ul>
  );
}
