// swift-format-ignore-file
// The sample of the article "Preparing widgets for additional platforms, contexts, and appearances",
// as it is printed, in a view that the article leaves out. Its empty cases have a text.
import TimelineRuntime

struct ModesView: View {
// MARK: Sample 16
// ...

@Environment(\.widgetRenderingMode) var renderingMode

var body: some View {
    ZStack {
        switch renderingMode {
        case .fullColor:
            // Create views for full-color widgets and watch complicat
            Text("full color")
        case .accented:
            // Create views and group applicable views in the accented
            VStack {
                // ...
            }
            .widgetAccentable()
            // Additional views that you don't group in the accented g
        case .vibrant:
            // Create views for Lock Screen widgets on iPhone and iPad
            Text("vibrant")
        }
    }
}
}
