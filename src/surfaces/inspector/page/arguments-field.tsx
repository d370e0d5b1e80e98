import { jsonText } from './json-view.js';
import { CodeField } from './parts.js';
import type { Schema } from './schema.js';
import { SchemaField } from './schema-form.js';

/** Arguments in a form or as text; the text may be invalid JSON. */
export interface WrittenArguments {
  readonly value: unknown;
  /** Set after the text was edited, until the form is edited. */
  readonly text?: string;
}

interface ArgumentsFieldProps {
  /** Label of the text field. */
  readonly label: string;
  /** `undefined`: only the text is shown. */
  readonly schema: Schema | undefined;
  readonly written: WrittenArguments;
  onChange(written: WrittenArguments): void;
}

/** A form and its JSON side by side, in sync. */
export function ArgumentsField({ label, schema, written, onChange }: ArgumentsFieldProps) {
  const { value, text = jsonText(value ?? {}) } = written;
  const isBroken = !isJson(text);
  const write = (changed: string) =>
    onChange({ text: changed, value: isJson(changed) ? JSON.parse(changed) : value });
  return (
    <div class="arguments">
      <div>
        {schema && (
          <div>
            <SchemaField
              name="arguments"
              schema={schema}
              root={schema}
              value={value}
              isRequired
              isRoot
              onChange={(changed) => onChange({ value: changed })}
            />
          </div>
        )}
        <div class={isBroken ? 'as-json broken' : 'as-json'}>
          <CodeField label={label} rows={5} value={text} onWrite={write} />
          <p class="hint" role="status">
            {isBroken && 'This is not JSON. It is sent unchanged, as a model would send it.'}
          </p>
        </div>
      </div>
    </div>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
