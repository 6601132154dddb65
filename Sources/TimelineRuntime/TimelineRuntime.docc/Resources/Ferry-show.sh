# In a second terminal, after the same variables: what the phone shows.
"$programs/timelinectl" show archive
