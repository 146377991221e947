/** What a publisher sends (interface 3). */

/** An event. Without `id` and `created_at`, the client makes them, so that every try has the same. */
export interface PublishedEvent {
  /** 1 to 128 of `A-Z a-z 0-9 . _ : ~ -`, unique within the environment. */
  id?: string | undefined;
  type:
    | 'session.created'
    | 'session.started'
    | 'session.submitted'
    | 'session.in_review'
    | 'session.approved'
    | 'session.declined'
    | 'session.resubmission_requested'
    | 'session.expired'
    | 'session.cancelled';
  /** ISO 8601 with a zone. */
  created_at?: string | undefined;
  environment: 'sandbox' | 'production';
  data: {
    id: string;
    status: string;
    reference?: string | undefined;
    country?: string | undefined;
    tier?: number | undefined;
    achieved_tier?: number | undefined;
    metadata?: Record<string, string> | undefined;
    [other: string]: unknown;
  };
}

/** The event is stored with all its deliveries: nothing can lose it any more. */
export interface Accepted {
  id: string;
  /** It was accepted before, perhaps by an earlier try whose response was lost. */
  duplicate: boolean;
  deliveries: number;
}
