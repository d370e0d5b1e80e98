import { useEffect, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { AppView } from './app-view.js';
import { CallForm } from './call-form.js';
import { Icon } from './icon.js';
import { Copy, Fault, Filter, Heading, hasWords, Json, Line, Split, Status, tokensOf } from './parts.js';
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
  readonly warnings: readonly string[];
}

interface ToolList {
  readonly tools: readonly ToolLine[];
  readonly connections: readonly Connection[];
  readonly warnings: readonly string[];
  readonly breakpoints: readonly string[];
}

interface Connection {
  readonly name: string;
  readonly state: string;
  readonly problem?: string;
  readonly tools: number;
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
  readonly app?: {
    readonly uri: string;
    readonly csp?: Readonly<Record<string, readonly string[]>>;
    readonly domain?: string;
  };
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

/** The list of tools, and the selected tool. */
export function ToolsView({ name }: { name: string }) {
  const { answer, fault } = useRemote<ToolList>('tools', ['tools', 'held']);
  const [words, setWords] = useState('');
  const { tools = [], connections = [], warnings = [], breakpoints = [] } = answer ?? {};
  const found = tools.filter((tool) =>
    hasWords(`${tool.name} ${tool.description} ${tool.method ?? ''}`, words),
  );
  const total = tools.reduce((sum, { tokens }) => sum + tokens, 0);
  const largest = Math.max(...tools.map(({ share }) => share));
  const list = (
    <>
      {name === '' && (
        <Heading subtitle="What models receive for each tool, and a form to call it.">Tools</Heading>
      )}
      <Filter label="Filter tools" text={words} onText={setWords} />
      <p class="faint small" role="status">
        {found.length} of {tools.length} tools, about {total} tokens
      </p>
      <Warnings warnings={warnings} />
      <Fault message={fault} />
      <Connections connections={connections} />
      <ul class="rows">
        {found.map((tool) => (
          <li key={tool.name}>
            <ToolRow
              tool={tool}
              largest={largest}
              isChosen={tool.name === name}
              isHeld={breakpoints.includes(tool.name)}
            />
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <Split label="Tools" list={list}>
      {name !== '' && <ToolView key={name} name={name} isHeld={breakpoints.includes(name)} />}
    </Split>
  );
}

interface RowProps {
  readonly tool: ToolLine;
  readonly largest: number;
  readonly isChosen: boolean;
  readonly isHeld: boolean;
}

function ToolRow({ tool, largest, isChosen, isHeld }: RowProps) {
  const { name, description, tokens, share, marks, warnings } = tool;
  return (
    <a class="tool" href={`#/tools/${encodeURIComponent(name)}`} aria-current={isChosen ? 'page' : undefined}>
      <strong class="code">{visibleText(name)}</strong>
      <span class="size">
        <span class="faint small">
          ~{tokens} tokens, {Math.round(share * 100)} %
        </span>
        <span class="size-bar" aria-hidden="true">
          <span style={{ width: `${(share / largest) * 100}%` }} />
        </span>
      </span>
      <span class="about">
        <span class="line">
          <Line value={description} />
        </span>
        <span class="tags">
          {isHeld && <span class="status waiting">breakpoint</span>}
          {warnings.length > 0 && (
            <span class="tag warning">
              <Icon name="warning" />
              {warnings.length} {warnings.length === 1 ? 'warning' : 'warnings'}
            </span>
          )}
          {marks.map((mark) => (
            <span key={mark} class="tag">
              {visibleText(mark)}
            </span>
          ))}
        </span>
      </span>
    </a>
  );
}

function Connections({ connections }: { connections: readonly Connection[] }) {
  if (connections.length === 0) return null;
  return (
    <ul class="connections" aria-label="Connections">
      {connections.map(({ name, state, problem, tools }) => (
        <li key={name}>
          <strong class="code">{visibleText(name)}</strong> <Status value={state} />{' '}
          <span class="faint small">
            {tools} {tools === 1 ? 'tool' : 'tools'}
            {problem !== undefined && <>. {visibleText(problem)}</>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Warnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {warnings.map((warning) => (
        <li key={warning}>
          <Icon name="warning" />
          <span>{visibleText(warning)}</span>
        </li>
      ))}
    </ul>
  );
}

function ToolView({ name, isHeld }: { name: string; isHeld: boolean }) {
  const { answer: card, fault } = useRemote<ToolCard>(`tools/${encodeURIComponent(name)}`, ['tools']);
  return (
    <>
      <p class="back">
        <a href="#/tools">All tools</a>
      </p>
      <Heading subtitle={card?.title && <Line value={card.title} />}>
        <span class="tool-name">{visibleText(name)}</span>
      </Heading>
      <Fault message={fault} />
      {card && (
        <>
          <p class="description">{visibleText(card.description)}</p>
          <div class="tags">
            {card.marks.map((mark) => (
              <span key={mark} class="tag">
                {visibleText(mark)}
              </span>
            ))}
          </div>
          <Warnings warnings={card.warnings} />
          <section class="card" aria-labelledby="call-of-tool">
            <div class="card-head">
              <h2 id="call-of-tool">Call</h2>
              <Breakpoint tool={name} isHeld={isHeld} />
            </div>
            <CallForm tool={name} schema={card.parameters} />
          </section>
          {card.app && (
            <section class="card" aria-labelledby="view-of-tool">
              <h2 id="view-of-tool">View before a call</h2>
              <AppView tool={name} data={undefined} />
            </section>
          )}
          <div class="columns">
            <div>
              <h2>Schema</h2>
              <SchemaTree schema={card.parameters} root={card.parameters} />
              {card.output !== undefined && (
                <details class="fold">
                  <summary>Output</summary>
                  <Json label="Output schema" value={card.output} />
                </details>
              )}
            </div>
            <div>
              <h2>Definition</h2>
              <Facts card={card} />
              <h2>Strict form</h2>
              <Strict report={card.strict} />
            </div>
          </div>
          <h2>Sent to models</h2>
          {card.surfaces.map((surface) => (
            <Surface key={surface.name} {...surface} />
          ))}
        </>
      )}
    </>
  );
}

/** The definition that a surface receives. */
function Surface({ name, sent, problem }: ToolCard['surfaces'][number]) {
  const json = JSON.stringify(sent) ?? '';
  return (
    <details class="fold">
      <summary>
        <span>{name}</span>{' '}
        <span class={problem === undefined ? 'faint small' : 'fault small'}>
          {problem === undefined ? `about ${tokensOf(json)} tokens` : 'cannot be sent'}
        </span>
      </summary>
      {problem === undefined ? (
        <>
          <Json label={`Sent to ${name}`} value={sent} />
          <Copy text={JSON.stringify(sent, null, 2)} what="JSON" />
        </>
      ) : (
        <p class="fault">{visibleText(problem)}</p>
      )}
    </details>
  );
}

/** The box is checked before the server confirms it. */
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
    <label class="switch small" title="Every call waits until you continue it under Pending">
      <input type="checkbox" checked={isOn} onChange={({ currentTarget }) => change(currentTarget.checked)} />
      Breakpoint: hold every call
    </label>
  );
}
function Facts({ card }: { card: ToolCard }) {
  const { method, place, origins, tokens, share, surroundings, limits, app } = card;
  const around = surroundings.map(({ kind, name }) => `${kind} ${name}`);
  const limited = Object.entries(limits ?? {}).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const facts: readonly (readonly [string, string])[] = [
    ['Method', method ?? 'none (the tool has no class)'],
    ['Written in', place === undefined ? 'unknown' : `${place.file}:${place.line}`],
    ['Schema from', origins.join(', ')],
    ['Size', `about ${tokens} tokens, ${Math.round(share * 1000) / 10} % of all definitions`],
    ['Around each call', around.join(', ') || 'no guard, policy or hook'],
    ...(limited.length > 0 ? [['Limits', limited.join(', ')] as const] : []),
    ...(app ? [['View', app.uri] as const, ['View may use', originsOf(app)] as const] : []),
    ...(app?.domain ? [['Domain of the view', app.domain] as const] : []),
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

function originsOf({ csp = {} }: NonNullable<ToolCard['app']>): string {
  const allowed = Object.entries(csp).map(([name, origins]) => `${name}: ${origins.join(' ')}`);
  return allowed.join(', ') || 'no other origin';
}

function Strict({ report }: { report: StrictReport }) {
  if (!report.isStrict)
    return (
      <>
        <p>There is no strict form; providers receive the schema as it is.</p>
        <ul>
          {report.reasons.map((reason) => (
            <li key={reason}>{visibleText(reason)}</li>
          ))}
        </ul>
      </>
    );
  const notes = [
    ...report.rewritten.map((note) => ({ ...note, how: 'rewritten' })),
    ...report.checked.map((note) => ({ ...note, how: 'only checked at the call' })),
  ];
  if (notes.length === 0) return <p>The schema is strict already.</p>;
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
