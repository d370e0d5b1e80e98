/** Said to the model of `calculate`, in both of its forms. */
export const CALCULATE_DESCRIPTION =
  'Calculate an arithmetic expression. Knows + - * / % ^, parentheses, pi, e and functions such as sqrt, round, min, max, sin, log (natural) and log10.';

export const EXPRESSION_DESCRIPTION = 'Arithmetic expression, e.g. 2 + 2 * 3 or round(sqrt(2), 3)';

/** Said to the model of `get_current_time`, in both of its forms. */
export const TIME_DESCRIPTION =
  'Get the current date and time. The answer is ISO 8601 with the offset from UTC of the time zone.';

export const TIMEZONE_DESCRIPTION =
  'IANA time zone, e.g. America/New_York or UTC; default: the zone of the machine';
