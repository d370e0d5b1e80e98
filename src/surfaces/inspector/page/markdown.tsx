import type { ComponentChildren } from 'preact';
import { visibleText } from '../../../core/kernel/visible-text.js';

/** Untrusted Markdown, complete or still streaming. There is no HTML in it, and links are http or https. */
export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocksOf(visibleText(text).split('\n'))}</div>;
}

const FENCE = /^\s*(?:```|~~~)/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+/;
const HEADING = /^#{1,6}\s+/;
const RULE = /^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/;
const QUOTE = /^\s*>\s?/;
const TABLE_RULE = /^[\s|:-]*-[\s|:-]*$/;
/** Lists and quotes that are nested deeper are shown as text. */
const DEEPEST = 8;

function blocksOf(lines: readonly string[], depth = 0): readonly ComponentChildren[] {
  const blocks: ComponentChildren[] = [];
  let at = 0;
  /** Consumes the current line and the following lines that fit. */
  const take = (fits: (line: string) => boolean): readonly string[] => {
    const begin = at;
    do at += 1;
    while (at < lines.length && fits(lines[at] ?? ''));
    return lines.slice(begin, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (line.trim() === '') at += 1;
    else if (FENCE.test(line)) {
      const [, ...code] = take((next) => !FENCE.test(next));
      at += 1;
      blocks.push(<CodeBlock text={code.join('\n')} />);
    } else if (HEADING.test(line)) {
      at += 1;
      blocks.push(<p>{<strong>{inline(line.replace(HEADING, ''))}</strong>}</p>);
    } else if (RULE.test(line)) {
      at += 1;
      blocks.push(<hr />);
    } else if (depth < DEEPEST && QUOTE.test(line)) {
      const quoted = take((next) => QUOTE.test(next)).map((one) => one.replace(QUOTE, ''));
      blocks.push(<blockquote>{blocksOf(quoted, depth + 1)}</blockquote>);
    } else if (depth < DEEPEST && ITEM.test(line))
      blocks.push(
        listOf(
          take((next) => ITEM.test(next) || /^\s+\S/.test(next)),
          depth,
        ),
      );
    else if (line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? ''))
      blocks.push(tableOf(take((next) => next.includes('|'))));
    else blocks.push(<p>{inline(take((next) => next.trim() !== '' && !beginsBlock(next)).join('\n'))}</p>);
  }
  return blocks;
}

function beginsBlock(line: string): boolean {
  return [FENCE, HEADING, QUOTE, ITEM].some((begin) => begin.test(line));
}

function CodeBlock({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse
    <pre class="text" role="group" tabIndex={0} aria-label="Code">
      <code>{text}</code>
    </pre>
  );
}

function listOf(lines: readonly string[], depth: number): ComponentChildren {
  const [, indent = '', number] = ITEM.exec(lines[0] ?? '') ?? [];
  const items: string[][] = [];
  for (const line of lines) {
    const [mark = '', own = ''] = ITEM.exec(line) ?? [];
    if (mark !== '' && own.length <= indent.length) items.push([line.slice(mark.length)]);
    else items.at(-1)?.push(line.slice(Math.min(indent.length + 2, line.length - line.trimStart().length)));
  }
  const shown = items.map((item, index) => <li key={index}>{itemOf(item, depth)}</li>);
  return number === undefined ? <ul>{shown}</ul> : <ol start={Number(number)}>{shown}</ol>;
}

/** The first lines of an item are text without a paragraph. */
function itemOf([first = '', ...rest]: readonly string[], depth: number): ComponentChildren {
  const nested = rest.findIndex((line) => beginsBlock(line));
  const text = [first, ...(nested < 0 ? rest : rest.slice(0, nested))].join('\n');
  return (
    <>
      {inline(text)}
      {nested >= 0 && blocksOf(rest.slice(nested), depth + 1)}
    </>
  );
}

function tableOf([head = '', , ...rows]: readonly string[]): ComponentChildren {
  const cells = (line: string) =>
    line
      .trim()
      .replace(/^\||\|$/g, '')
      .split('|')
      .map((cell) => inline(cell.trim()));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse
    <div class="table" role="group" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {cells(head).map((cell, index) => (
              <th key={index}>{cell}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {cells(row).map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Lengths are limited, so that matching stays fast for any text. */
const INLINE =
  /`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|\*([^*\s][^*\n]{0,2000})\*|(?<!\w)_([^_\n]{1,2000})_(?!\w)|\[([^\]\n]{1,500})\]\((https?:[^)\s]{1,2000})\)|(https?:\/\/[^\s<>()"'`*]{1,2000})/g;

function inline(text: string): readonly ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, bold, starred, underscored, label, href, address] = match;
    parts.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (bold !== undefined) parts.push(<strong>{inline(bold)}</strong>);
    else if (href !== undefined) parts.push(<Link href={href}>{label}</Link>);
    else if (address !== undefined) parts.push(<Link href={address}>{address}</Link>);
    else parts.push(<em>{inline(starred ?? underscored ?? '')}</em>);
  }
  parts.push(text.slice(end));
  return parts;
}

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
