/** This view. */
import { View } from '../view.js';
customElements.define('w-approvals', class extends View {});
