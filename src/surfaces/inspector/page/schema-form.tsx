import { useEffect, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { useFieldId } from './parts.js';
import {
  alternativeOf,
  type FieldKind,
  fieldKind,
  firstValue,
  resolved,
  type Schema,
  typeName,
} from './schema.js';

interface FieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly root: Schema;
  readonly value: unknown;
  readonly isRequired: boolean;
  onChange(value: unknown): void;
}

/** A form for the values of a schema: absent is `undefined`. */
export function SchemaField(props: FieldProps) {
  const { schema, root, name, isRequired, value } = props;
  const field = fieldKind(schema, root);
  const { description } = resolved(schema, root);
  const isGroup = field.kind === 'object' || field.kind === 'list' || field.kind === 'union';
  if (isGroup && !isRequired && value === undefined) return <Absent {...props} />;
  if (!isGroup) return <Leaf {...props} field={field} />;
  return (
    <fieldset>
      <legend>
        <Name name={name} isRequired={isRequired} />
        <span class="faint"> {visibleText(typeName(schema, root))}</span>
      </legend>
      {typeof description === 'string' && <p class="hint">{visibleText(description)}</p>}
      <Group {...props} field={field} />
      {!isRequired && (
        <button type="button" onClick={() => props.onChange(undefined)}>
          Leave out {visibleText(name)}
        </button>
      )}
    </fieldset>
  );
}

function Name({ name, isRequired }: { name: string; isRequired: boolean }) {
  return (
    <>
      {visibleText(name)}
      {isRequired && <span class="required"> required</span>}
    </>
  );
}

function Absent({ name, schema, root, onChange }: FieldProps) {
  return (
    <div class="field">
      <button type="button" onClick={() => onChange(firstValue(schema, root, 1) ?? {})}>
        Add {visibleText(name)}
      </button>{' '}
      <span class="faint">{visibleText(typeName(schema, root))}</span>
    </div>
  );
}

function Group(props: FieldProps & { readonly field: FieldKind }) {
  const { field } = props;
  if (field.kind === 'object') return <Members {...props} field={field} />;
  if (field.kind === 'list') return <Items {...props} field={field} />;
  if (field.kind === 'union') return <Union {...props} alternatives={field.alternatives} />;
  return null;
}

function Members({
  field,
  value,
  root,
  onChange,
}: FieldProps & { readonly field: FieldKind & { kind: 'object' } }) {
  const record = (typeof value === 'object' && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const change = (key: string, member: unknown) => {
    const others = Object.entries(record).filter(([other]) => other !== key);
    const kept = member === undefined ? [] : [[key, member] as const];
    // In the order of the schema, whatever was filled in first.
    const order = field.properties.map(([name]) => name);
    const entries = [...others, ...kept].sort(([one], [other]) => order.indexOf(one) - order.indexOf(other));
    onChange(Object.fromEntries(entries));
  };
  if (field.properties.length === 0) return <p class="faint">It takes no arguments.</p>;
  return (
    <>
      {field.properties.map(([key, part]) => (
        <SchemaField
          key={key}
          name={key}
          schema={part}
          root={root}
          value={Object.hasOwn(record, key) ? record[key] : undefined}
          isRequired={field.required.has(key)}
          onChange={(member) => change(key, member)}
        />
      ))}
    </>
  );
}

function Items({
  name,
  field,
  value,
  root,
  onChange,
}: FieldProps & { readonly field: FieldKind & { kind: 'list' } }) {
  const items = Array.isArray(value) ? value : [];
  const schemaAt = (index: number) => field.prefix[index] ?? field.items ?? {};
  return (
    <>
      {items.map((item, index) => (
        <div class="item" key={index}>
          <SchemaField
            name={`${name} ${index + 1}`}
            schema={schemaAt(index)}
            root={root}
            value={item}
            isRequired
            onChange={(changed) => onChange(items.map((other, at) => (at === index ? changed : other)))}
          />
          <button type="button" onClick={() => onChange(items.filter((_, at) => at !== index))}>
            Remove {visibleText(name)} {index + 1}
          </button>
        </div>
      ))}
      <button
        type="button"
        onClick={() => onChange([...items, firstValue(schemaAt(items.length), root, 1) ?? ''])}
      >
        Add to {visibleText(name)}
      </button>
    </>
  );
}

function Union({ alternatives, ...props }: FieldProps & { readonly alternatives: readonly Schema[] }) {
  const { name, value, root, onChange } = props;
  const id = useFieldId();
  const [chosen, setChosen] = useState(() => alternativeOf(value, alternatives, root));
  const choose = (index: number) => {
    setChosen(index);
    onChange(firstValue(alternatives[index] ?? {}, root, 1));
  };
  const alternative = alternatives[chosen] ?? {};
  return (
    <>
      <div class="field">
        <label for={id}>Form of {visibleText(name)}</label>
        <select
          id={id}
          value={String(chosen)}
          onChange={({ currentTarget }) => choose(Number(currentTarget.value))}
        >
          {alternatives.map((one, index) => (
            <option key={index} value={String(index)}>
              {visibleText(typeName(one, root))}
            </option>
          ))}
        </select>
      </div>
      <SchemaField key={chosen} {...props} schema={alternative} isRequired />
    </>
  );
}

function Leaf({
  name,
  schema,
  root,
  value,
  isRequired,
  onChange,
  field,
}: FieldProps & { readonly field: FieldKind }) {
  const id = useFieldId();
  const { description, format, default: preset } = resolved(schema, root);
  const hint = typeof description === 'string' ? description : '';
  const described: Readonly<Record<string, string>> = hint === '' ? {} : { 'aria-describedby': `${id}-hint` };
  return (
    <div class="field">
      <label for={id}>
        <Name name={name} isRequired={isRequired} />{' '}
        <span class="faint">
          {visibleText(typeName(schema, root))}
          {typeof format === 'string' && `, ${visibleText(format)}`}
          {preset !== undefined && `, otherwise ${visibleText(JSON.stringify(preset))}`}
        </span>
      </label>
      {hint !== '' && (
        <p class="hint" id={`${id}-hint`}>
          {visibleText(hint)}
        </p>
      )}
      <Input
        id={id}
        described={described}
        field={field}
        value={value}
        isRequired={isRequired}
        onChange={onChange}
      />
    </div>
  );
}

interface InputProps extends Pick<FieldProps, 'value' | 'isRequired' | 'onChange'> {
  readonly id: string;
  readonly described: Readonly<Record<string, string>>;
  readonly field: FieldKind;
}

function Input({ id, described, field, value, isRequired, onChange }: InputProps) {
  if (field.kind === 'fixed')
    return <Choice {...{ id, described, value, isRequired, onChange }} values={[field.value]} />;
  if (field.kind === 'boolean')
    return <Choice {...{ id, described, value, isRequired, onChange }} values={[true, false]} />;
  if (field.kind === 'choice')
    return <Choice {...{ id, described, value, isRequired, onChange }} values={field.values} />;
  if (field.kind === 'json') return <JsonInput {...{ id, described, value, onChange }} />;
  const isNumber = field.kind === 'number';
  const write = (text: string) => {
    if (text === '' && (isNumber || !isRequired)) onChange(undefined);
    // What is no number is sent as it was written: the call says what is wrong with it.
    else onChange(isNumber && text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text);
  };
  if (isNumber) return <NumberInput {...{ id, described, value }} onWrite={write} />;
  const shown = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  return (
    <textarea
      id={id}
      {...described}
      rows={1}
      value={shown}
      onInput={({ currentTarget }) => write(currentTarget.value)}
    />
  );
}

type NumberProps = Pick<InputProps, 'id' | 'described' | 'value'> & { onWrite(text: string): void };

/** Keeps what was written as it was written: `1.` and `1e` are on their way to a number. */
function NumberInput({ id, described, value, onWrite }: NumberProps) {
  const [text, setText] = useState(value === undefined ? '' : String(value));
  useEffect(() => {
    const isSame = text.trim() === '' ? value === undefined : Number(text) === value || text === value;
    if (!isSame) setText(value === undefined ? '' : String(value));
  }, [value]);
  const write = (written: string) => {
    setText(written);
    onWrite(written);
  };
  return (
    <input
      id={id}
      {...described}
      inputMode="decimal"
      value={text}
      onInput={({ currentTarget }) => write(currentTarget.value)}
    />
  );
}

function Choice({
  id,
  described,
  values,
  value,
  isRequired,
  onChange,
}: Omit<InputProps, 'field'> & { readonly values: readonly unknown[] }) {
  const at = values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
  return (
    <select
      id={id}
      {...described}
      value={String(at)}
      onChange={({ currentTarget }) =>
        onChange(currentTarget.value === '-1' ? undefined : values[Number(currentTarget.value)])
      }
    >
      {(!isRequired || at < 0) && <option value="-1">(left out)</option>}
      {values.map((one, index) => (
        <option key={index} value={String(index)}>
          {visibleText(typeof one === 'string' ? one : JSON.stringify(one))}
        </option>
      ))}
    </select>
  );
}

/** For what no form can say. */
function JsonInput({
  id,
  described,
  value,
  onChange,
}: Pick<InputProps, 'id' | 'described' | 'value' | 'onChange'>) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const [fault, setFault] = useState('');
  const write = (written: string) => {
    setText(written);
    try {
      onChange(written.trim() === '' ? undefined : JSON.parse(written));
      setFault('');
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  return (
    <>
      <textarea
        id={id}
        {...described}
        rows={3}
        class="code"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => write(currentTarget.value)}
      />
      <p class="hint" role="status">
        {fault === '' ? 'as JSON' : `no JSON yet: ${fault}`}
      </p>
    </>
  );
}
