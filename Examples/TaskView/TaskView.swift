#if canImport(SwiftUI)
    import FKCore
    import SwiftUI

    /// One task: its name, its progress and its button.
    struct TaskView: View {
        let model: TaskModel

        var body: some View {
            VStack(alignment: .leading) {
                HStack {
                    Text(model.name)
                    Spacer()
                    if model.canSuspend { Button("Pause") { model.suspend() } }
                    if model.canStart { Button("Start") { model.start() } }
                }
                ProgressView(value: model.info?.fraction)
                if let error = model.info?.error { Text(error.message).foregroundStyle(.red) }
            }
        }
    }

    /// All tasks of a barrel, with combined progress. Rows make a model for their task when they are shown.
    struct BarrelView: View {
        let model: BarrelModel

        var body: some View {
            List {
                ProgressView(
                    "\(model.info?.states[.complete] ?? 0) of \(model.info?.total ?? 0)", value: model.info?.fraction)
                ForEach(model.members) { task in TaskRow(task) }
            }
        }
    }

    /// A row keeps its model while it is on the screen.
    struct TaskRow: View {
        @State private var model: TaskModel

        init(_ task: DownloadTask) { model = TaskModel(task) }

        var body: some View { TaskView(model: model) }
    }
#endif
