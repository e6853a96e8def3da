/// Shows a picker to people: a window, a terminal, or a test. Give it to ``NighGameKit/presenter``. It is called on the
/// main queue.
public protocol PeerPickerPresenter: AnyObject {
    /// Shows the dialog, or shows it anew after a change.
    func show(_ dialog: PeerPickerDialog)

    /// Takes the dialog away. It is not used any more.
    func dismiss(_ dialog: PeerPickerDialog)
}
