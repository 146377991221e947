/** Surrounds a page: a placeholder while its code is loading, and an explanation if it cannot be loaded or shown. */
import { Component, type ReactNode, Suspense } from 'react';
import { Loading, Problem } from './states.tsx';

interface PageBoundaryProps {
  /** Another path is another page: the error of the earlier one no longer applies. */
  path: string;
  children: ReactNode;
}

interface PageBoundaryState {
  path: string;
  failed: boolean;
}

/** While a link loads the next page's code, the current page stays: its `Suspense` is not replaced. */
export class PageBoundary extends Component<PageBoundaryProps, PageBoundaryState> {
  override state: PageBoundaryState = { path: this.props.path, failed: false };

  static getDerivedStateFromProps({ path }: PageBoundaryProps, state: PageBoundaryState): PageBoundaryState | null {
    return path === state.path ? null : { path, failed: false };
  }

  static getDerivedStateFromError(): Partial<PageBoundaryState> {
    return { failed: true };
  }

  override render(): ReactNode {
    if (!this.state.failed) return <Suspense fallback={<Loading />}>{this.props.children}</Suspense>;
    // After a deployment the files of the earlier build are gone; loading the whole page again gets the new ones.
    const error = new Error(
      'Its code could not be loaded or failed. The console may be down, or have been updated meanwhile.',
    );
    return <Problem title="This page can't be shown" error={error} retry={() => window.location.reload()} />;
  }
}
