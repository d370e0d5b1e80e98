import type { LoopEvent } from '../../loop/loop-event.js';
import type { SatelliteOutcome } from './satellite-outcome.js';

/**
 * What happens while a satellite works, in order: the events of the loop, besides `retry` where a request is
 * sent again; text of the step before it was in vain and will be written anew.
 */
export type SatelliteEvent =
  | { readonly type: 'run-start'; readonly conversationId: string }
  | Extract<
      LoopEvent,
      { readonly type: 'step-start' | 'text-delta' | 'call-start' | 'call-progress' | 'call-end' }
    >
  | { readonly type: 'retry'; readonly attempt: number; readonly delayMs: number; readonly error: Error }
  | { readonly type: 'run-end'; readonly outcome: SatelliteOutcome };

/** Hears of events, and is not waited for; what it throws is logged and changes nothing. */
export type SatelliteListener = (event: SatelliteEvent) => unknown;
