import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { Icon } from './icon.js';
import { useFieldId } from './parts.js';
import {
  alternativeOf,
  type FieldKind,
  fieldKind,
  firstOf,
  firstValue,
  resolved,
  type Schema,
  typeName,
  unionOf,
} from './schema.js';

interface FieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly root: Schema;
  readonly value: unknown;
  readonly isRequired: boolean;
  /** The root object has no legend. */
  readonly isRoot?: boolean;
  onChange(value: unknown): void;
}

/** A form for a value of a schema; `undefined` means absent. */
export function SchemaField(props: FieldProps) {
  const { schema, root, name, isRequired, isRoot = false, value, onChange } = props;
  const field = fieldKind(schema, root);
  const isGroup = field.kind === 'object' || field.kind === 'list' || field.kind === 'union';
  if (isGroup && !isRequired && value === undefined) return <Absent {...props} />;
  if (!isGroup) return <Leaf {...props} field={field} />;
  if (isRoot && field.kind === 'object') return <Members {...props} field={field} />;
  const leaveOut = !isRequired && (
    <button type="button" class="quiet" onClick={() => onChange(undefined)}>
      Leave out {visibleText(name)}
    </button>
  );
  if (field.kind === 'union') return <Union {...props} alternatives={field.alternatives} extra={leaveOut} />;
  return (
    <Group name={name} schema={schema} root={root} isRequired={isRequired} extra={leaveOut}>
      {field.kind === 'list' ? <Items {...props} field={field} /> : <Members {...props} field={field} />}
    </Group>
  );
}

/** Items of a list show only their number. */
function Name({ name, isRequired }: { name: string; isRequired: boolean }) {
  const [, list, number] = /^(.*) (\d+)$/s.exec(name) ?? [];
  const required = isRequired && <span class="required"> required</span>;
  if (number === undefined)
    return (
      <>
        {visibleText(name)}
        {required}
      </>
    );
  return (
    <>
      <span class="hidden">{visibleText(list ?? '')} </span>
      <span class="number">{number}</span>
      <span class="hidden">{required}</span>
    </>
  );
}

type GroupProps = Pick<FieldProps, 'name' | 'schema' | 'root' | 'isRequired'> & {
  readonly extra: ComponentChildren;
  readonly children: ComponentChildren;
};

/** An indented group of fields. */
function Group({ name, schema, root, isRequired, extra, children }: GroupProps) {
  const { description } = resolved(schema, root);
  return (
    <fieldset class="group">
      <legend>
        <Name name={name} isRequired={isRequired} />
        <span class="faint"> {visibleText(typeName(schema, root))}</span>
      </legend>
      {typeof description === 'string' && <p class="hint">{visibleText(description)}</p>}
      <div class="inside">{children}</div>
      {extra}
    </fieldset>
  );
}

function Absent({ name, schema, root, onChange }: FieldProps) {
  return (
    <div class="field">
      <button type="button" class="quiet" onClick={() => onChange(firstValue(schema, root, 1) ?? {})}>
        <Icon name="plus" /> Add {visibleText(name)}
      </button>{' '}
      <span class="faint small">{visibleText(typeName(schema, root))}</span>
    </div>
  );
}

type MembersProps = Omit<FieldProps, 'isRequired' | 'isRoot'> & {
  readonly field: FieldKind & { readonly kind: 'object' };
  /** The discriminator, which is set by the choice of the alternative. */
  readonly hiddenKey?: string | undefined;
};

function Members({ field, value, root, hiddenKey, onChange }: MembersProps) {
  const record = (typeof value === 'object' && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const change = (key: string, member: unknown) => {
    const others = Object.entries(record).filter(([other]) => other !== key);
    const kept = member === undefined ? [] : [[key, member] as const];
    // Members keep the order of the schema.
    const order = field.properties.map(([name]) => name);
    const entries = [...others, ...kept].sort(([one], [other]) => order.indexOf(one) - order.indexOf(other));
    onChange(Object.fromEntries(entries));
  };
  if (field.properties.length === 0) return <p class="faint">No arguments.</p>;
  return (
    <div class="members">
      {field.properties
        .filter(([key]) => key !== hiddenKey)
        .map(([key, part]) => (
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
    </div>
  );
}

/** One row per item. */
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
          <button
            type="button"
            class="quiet"
            aria-label={`Remove ${visibleText(name)} ${index + 1}`}
            title="Remove"
            onClick={() => onChange(items.filter((_, at) => at !== index))}
          >
            <Icon name="bad" />
          </button>
        </div>
      ))}
      <button
        type="button"
        class="quiet"
        onClick={() => onChange([...items, firstValue(schemaAt(items.length), root, 1) ?? ''])}
      >
        <Icon name="plus" /> Add to {visibleText(name)}
      </button>
    </>
  );
}

type UnionProps = FieldProps & {
  readonly alternatives: readonly Schema[];
  readonly extra: ComponentChildren;
};

/** A choice of alternatives, and the fields of the chosen alternative. */
function Union({ alternatives, extra, ...props }: UnionProps) {
  const { name, schema, value, root, isRequired, onChange } = props;
  const id = useFieldId();
  const { names, key: hiddenKey } = unionOf(alternatives, root);
  const [before, setChosen] = useState<number>();
  // The value may be changed in the text beside the form.
  const chosen = alternativeOf(value, { alternatives, root, at: before });
  useEffect(() => setChosen(chosen), [chosen]);
  const choose = (index: number) => {
    setChosen(index);
    onChange(firstOf(alternatives[index] ?? {}, { root, key: hiddenKey }));
  };
  const alternative = alternatives[chosen] ?? {};
  const field = fieldKind(alternative, root);
  return (
    <Group name={name} schema={schema} root={root} isRequired={isRequired} extra={extra}>
      <div class="field">
        <label for={id} class="hidden">
          Form of {visibleText(name)}
        </label>
        <select
          id={id}
          value={String(chosen)}
          onChange={({ currentTarget }) => choose(Number(currentTarget.value))}
        >
          {names.map((one, index) => (
            <option key={index} value={String(index)}>
              {visibleText(one)}
            </option>
          ))}
        </select>
      </div>
      {field.kind === 'object' ? (
        <Members key={chosen} {...props} field={field} hiddenKey={hiddenKey} />
      ) : (
        field.kind !== 'fixed' && <SchemaField key={chosen} {...props} schema={alternative} isRequired />
      )}
    </Group>
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
          {preset !== undefined && `, default ${visibleText(JSON.stringify(preset))}`}
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
    // Text that is not a number is sent as text, so that the call reports the error.
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

/** Stores the text, because `1.` and `1e` are unfinished numbers. */
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

/** For schemas that a form cannot represent. */
function JsonInput({
  id,
  described,
  value,
  onChange,
}: Pick<InputProps, 'id' | 'described' | 'value' | 'onChange'>) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const [fault, setFault] = useState('');
  // The value may be changed in the text beside the form; invalid JSON stays.
  useEffect(() => {
    if (fault === '' && jsonIn(text) !== JSON.stringify(value))
      setText(value === undefined ? '' : JSON.stringify(value, null, 2));
  }, [value]);
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
        {fault === '' ? 'as JSON' : `not valid JSON: ${fault}`}
      </p>
    </>
  );
}

function jsonIn(text: string): string | undefined {
  return text.trim() === '' ? undefined : JSON.stringify(JSON.parse(text));
}
