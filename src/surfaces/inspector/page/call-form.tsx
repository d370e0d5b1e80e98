import { useState } from 'preact/hooks';
import { ArgumentsField, type WrittenArguments } from './arguments-field.js';
import { type CallDetail, CallResult, type CallTexts } from './call-result.js';
import { Copy, Fault } from './parts.js';
import { post } from './remote.js';
import { firstValue, type Schema } from './schema.js';
import { ScopeFields, scopeOf, useScope } from './scope-fields.js';

/** A form that calls a tool through the whole pipeline. */
export function CallForm({ tool, schema }: { tool: string; schema: Schema }) {
  const [written, setWritten] = useState<WrittenArguments>(() => ({ value: firstValue(schema, schema) }));
  const [scope, setScope] = useScope();
  const [call, setCall] = useState<CallDetail>();
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  // Text is sent unchanged, so that repairs of broken JSON can be tried.
  const sent = () => ({ tool, arguments: written.text ?? written.value ?? {} });
  const submit = async () => {
    if (isBusy) return;
    setBusy(true);
    setFault(undefined);
    setCall(undefined);
    try {
      setCall(await post<CallDetail>('calls', { ...sent(), scope: scopeOf(scope) }));
    } catch (error) {
      setFault((error as Error).message);
    }
    setBusy(false);
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
      <ArgumentsField label="Arguments as text" schema={schema} written={written} onChange={setWritten} />
      <ScopeFields texts={scope} onChange={setScope} />
      <div class="actions">
        <button type="submit" class="main" aria-disabled={isBusy}>
          {isBusy ? 'Calling…' : 'Call'}
        </button>
        <kbd>Ctrl</kbd>
        <kbd>Enter</kbd>
        <Copy what="as curl" text={async () => (await post<CallTexts>('call-texts', sent())).curl} />
        <Copy what="as script" text={async () => (await post<CallTexts>('call-texts', sent())).script} />
      </div>
      <Fault message={fault} />
      <div aria-live="polite">{call && <CallResult call={call} onNext={setCall} />}</div>
    </form>
  );
}
