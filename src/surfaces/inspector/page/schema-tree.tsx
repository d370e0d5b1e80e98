import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { partsOf, resolved, type Schema, typeName } from './schema.js';

const TOLD = new Set([
  ...[
    'type',
    'properties',
    'required',
    'items',
    'prefixItems',
    'anyOf',
    'oneOf',
    '$ref',
    '$defs',
    'description',
  ],
  ...['title', '$schema', 'definitions'],
]);

/** A schema as a tree. Children are rendered when opened, because a schema may contain itself. */
export function SchemaTree({ schema, root }: { schema: Schema; root: Schema }) {
  const parts = partsOf(schema, root);
  if (parts.length === 0) return <p class="faint">No parameters.</p>;
  return (
    <ul class="tree">
      {parts.map(({ name, schema: part, isRequired }) => (
        <li key={name}>
          <Node name={name} schema={part} root={root} isRequired={isRequired ?? false} />
        </li>
      ))}
    </ul>
  );
}

function Node({
  name,
  schema,
  root,
  isRequired,
}: {
  name: string;
  schema: Schema;
  root: Schema;
  isRequired: boolean;
}) {
  const [isOpen, setOpen] = useState(false);
  const own = resolved(schema, root);
  const constraints = Object.entries(own).filter(([key]) => !TOLD.has(key));
  const hasParts = partsOf(schema, root).length > 0;
  const line = (
    <>
      <code>{visibleText(name)}</code> <span class="faint">{visibleText(typeName(schema, root))}</span>
      {isRequired && <span class="required"> required</span>}
    </>
  );
  return (
    <>
      {hasParts ? (
        <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
          <summary>{line}</summary>
          {isOpen && <SchemaTree schema={schema} root={root} />}
        </details>
      ) : (
        line
      )}
      {typeof own.description === 'string' && <p class="hint">{visibleText(own.description)}</p>}
      {constraints.length > 0 && (
        <p class="hint">
          {constraints
            .map(([key, value]) => `${visibleText(key)}: ${visibleText(JSON.stringify(value))}`)
            .join(' · ')}
        </p>
      )}
    </>
  );
}
