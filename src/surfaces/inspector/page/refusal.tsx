import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Action } from './parts.js';

interface RefusalProps {
  /** The text of the button. */
  readonly children: ComponentChildren;
  onRefuse(reason?: string): Promise<unknown>;
}

/** A button that refuses a call, beside the reason for the model. */
export function Refusal({ children, onRefuse }: RefusalProps) {
  const [reason, setReason] = useState('');
  return (
    <>
      <input
        class="reason"
        aria-label="Reason of a refusal"
        placeholder="Reason, if you refuse"
        value={reason}
        onInput={({ currentTarget }) => setReason(currentTarget.value)}
      />
      <Action kind="danger" icon="bad" onDo={() => onRefuse(reason === '' ? undefined : reason)}>
        {children}
      </Action>
    </>
  );
}
