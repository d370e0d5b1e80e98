import { useState } from 'preact/hooks';
import { type CallDetail, CallResult } from './call-result.js';
import { CodeField, Fault, readJson, useFieldId } from './parts.js';
import { post } from './remote.js';
import { firstValue, type Schema } from './schema.js';
import { SchemaField } from './schema-form.js';
import { ScopeFields, scopeOf, useScope } from './scope-fields.js';

/** A form that calls a tool, as anybody else would. */
export function CallForm({ tool, schema }: { tool: string; schema: Schema }) {
  const [value, setValue] = useState<unknown>(() => firstValue(schema, schema));
  const [written, setWritten] = useState<string>();
  const [scope, setScope] = useScope();
  const [call, setCall] = useState<CallDetail>();
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const id = useFieldId();
  const submit = async () => {
    if (isBusy) return;
    setBusy(true);
    setFault(undefined);
    setCall(undefined);
    try {
      // Text goes as it is: broken JSON is what the call has to deal with.
      const args = written ?? value ?? {};
      setCall(await post<CallDetail>('calls', { tool, arguments: args, scope: scopeOf(scope) }));
    } catch (error) {
      setFault((error as Error).message);
    }
    setBusy(false);
  };
  const toJson = () => setWritten(JSON.stringify(value ?? {}, null, 2));
  const toForm = () => {
    try {
      setValue(readJson(written ?? '', 'What was written') ?? {});
      setWritten(undefined);
      setFault(undefined);
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
      }}
    >
      <fieldset class="modes">
        <legend class="hidden">Arguments as</legend>
        <label>
          <input type="radio" name={id} checked={written === undefined} onChange={toForm} /> Form
        </label>
        <label>
          <input type="radio" name={id} checked={written !== undefined} onChange={toJson} /> Text, as a model
          sends it
        </label>
      </fieldset>
      {written === undefined ? (
        <SchemaField
          name="arguments"
          schema={schema}
          root={schema}
          value={value}
          isRequired
          onChange={setValue}
        />
      ) : (
        <CodeField label="Arguments as text" rows={6} value={written} onWrite={setWritten} />
      )}
      <ScopeFields texts={scope} onChange={setScope} />
      <p>
        <button type="submit" class="main" aria-disabled={isBusy}>
          {isBusy ? 'Calling…' : 'Call'}
        </button>{' '}
        <span class="faint">Ctrl+Enter</span>
      </p>
      <Fault message={fault} />
      <div aria-live="polite">{call && <CallResult call={call} onNext={setCall} />}</div>
    </form>
  );
}
